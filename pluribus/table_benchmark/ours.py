"""Our contenders: methods on our networks for tables, trained by `pluribus.fit`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..core.convert import ensemble as convert
from ..core.seeds import set_seed
from ..core.spec import Spec
from ..models.registry import build
from .contender import Contender, Limits, Options, Predict, Tuned, choose_batch_size
from .rows import Rows
from .scores import Gaussians

SPACE = {
    "lr": Tuned(1e-3, "log", (3e-4, 5e-3)),
    "weight_decay": Tuned(1e-2, "log", (1e-4, 1e-1)),
    "width": Tuned(128, "choice", (64, 128, 256)),
    "depth": Tuned(2, "int", (1, 3)),
    "dropout": Tuned(0.0, "float", (0.0, 0.3)),
}
DROPPING = {**SPACE, "dropout": Tuned(0.1, "float", (0.02, 0.3))}
"""For a method whose draws are those of dropout."""
PLAIN = {**{name: SPACE[name] for name in ("lr", "weight_decay", "width", "depth")}}
METHODS: Mapping[str, tuple[str, str, Mapping[str, Any], Mapping[str, Tuned]]] = {
    "single": ("one network", "tabular", {"name": "single"}, SPACE),
    "mlp": ("one MLP", "mlp", {"name": "single"}, PLAIN),
    "mc-dropout": ("MC dropout", "tabular", {"name": "mc-dropout"}, DROPPING),
    "mimo": ("MIMO", "tabular", {"name": "mimo"}, SPACE),
    "batch-ensemble": ("BatchEnsemble of 4", "tabular", {"name": "batch-ensemble"}, SPACE),
    "batch-ensemble-32": (
        "BatchEnsemble of 32 with own heads",
        "tabular",
        {"name": "batch-ensemble", "members": 32, "heads": "own", "init": "first-sign"},
        SPACE,
    ),
    "deep-ensemble": ("deep ensemble of 4", "tabular", {"name": "deep-ensemble"}, SPACE),
}
"""name → title, network, method, and what is tuned."""


def list_ours() -> list[Contender]:
    return [make_contender(name, *about) for name, about in METHODS.items()]


def make_contender(
    name: str, title: str, model: str, method: Mapping[str, Any], space: Mapping[str, Tuned] = SPACE
) -> Contender:
    """A contender from a choice of network and method. Raises ConfigError if there is no such method or option."""
    from ..runs.config import build_spec

    spec = build_spec(method)

    def fit(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
        return fit_ours(model, spec, rows, options, seed, limits)

    return Contender(name, title, fit, space, is_ours=True)


def fit_ours(model: str, spec: Spec, rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    """Train our ensemble until the validation rows no longer improve."""
    from ..training.fit import fit

    set_seed(seed)
    shape = tuple(rows.train.x.shape[1:])
    if model == "mlp":
        sizes: Options = {"hidden": (options["width"],) * options["depth"]}
    else:
        sizes = {name: options[name] for name in ("width", "depth", "dropout")}
    net = build(model, shape, 1, column_widths=rows.column_widths, **sizes)
    made = convert(net, spec, example=rows.train.x[:2], task="regression")
    fit(
        made,
        (rows.train.x, rows.train.y),
        (rows.validation.x, rows.validation.y),
        seed=seed,
        epochs=limits.epochs,
        patience=limits.patience,
        batch_size=choose_batch_size(len(rows.train)),
        lr=options["lr"],
        weight_decay=options["weight_decay"],
        schedule="constant",
        progress=False,
    )
    made.eval()

    def predict(x: Tensor) -> Gaussians:
        with torch.inference_mode():
            p = made.predict(x, members=False)
        return Gaussians(p.mean.flatten(), p.variance.flatten())

    return predict
