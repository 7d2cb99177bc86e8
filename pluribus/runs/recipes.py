"""Recipes: named settings of a network and its training that reach a good accuracy quickly on two cores.

A recipe gives defaults: settings that are given beside it take precedence. README.md says what they reach.
"""

from collections.abc import Mapping
from typing import Any

RECIPES: dict[str, Mapping[str, Any]] = {
    "fast": {
        "model": "fast-cnn",
        "augment": "small-crop-alternate",
        "epochs": 8,
        "batch_size": 256,
        "optimizer": "muon",
        "lr": 0.09,
        "weight_decay": 3e-3,
        "bias_lr": 4.0,
        "bias_decay": False,
        "schedule": "linear",
        "warmup": 0.8,
    },
    "fast-sgd": {
        "model": "fast-cnn",
        "augment": "small-crop-flip",
        "epochs": 8,
        "batch_size": 64,
        "optimizer": "sgd",
        "lr": 0.05,
        "weight_decay": 3e-3,
        "bias_lr": 4.0,
        "bias_decay": False,
        "schedule": "linear",
        "warmup": 0.8,
    },
    "fast-mnist": {
        "model": {"name": "fast-cnn", "width": 0.5},
        "augment": "none",
        "epochs": 5,
        "batch_size": 128,
        "optimizer": "sgd",
        "lr": 0.2,
        "weight_decay": 5e-4,
        "schedule": "linear",
        "warmup": 0.5,
    },
    "fast-table": {
        "model": "mlp",
        "epochs": "auto",
        "max_epochs": 300,
        "batch_size": 64,
        "optimizer": "adamw",
        "lr": 2e-3,
        "warmup": 2,
    },
}
"""For photographs such as CIFAR-10 (`fast`, and `fast-sgd`, which trains by SGD as papers do), for grey images such as
MNIST, and for tables."""


def apply_recipe(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with those of their recipe added, where they do not say otherwise themselves.

    >>> apply_recipe({"recipe": "fast", "epochs": 2})["epochs"], apply_recipe({"recipe": "fast"})["optimizer"]
    (2, 'muon')
    """
    name = options.get("recipe")
    if not isinstance(name, str):
        return dict(options)
    recipe = dict(RECIPES.get(name, {}))
    if options.get("epochs") == "auto":  # which has a schedule of its own
        recipe.pop("schedule", None)
    return {**recipe, **options}
