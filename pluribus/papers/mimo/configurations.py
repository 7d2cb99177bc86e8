"""Which network is trained how at each scale."""

from typing import Any

from ..recipe import Json
from ..verdicts import Precondition, format_percent

FAST: dict[str, Json] = {
    "smoke": {"data": "digits", "model": "small-cnn:width=0.5", "epochs": 1, "rows": 100},
    "cpu": {"data": "cifar10", "recipe": "fast", "rows": 5000, "epochs": 40},
    "paper": {
        "data": "cifar10",
        "model": "wrn-28-10",
        "epochs": 250,
        "batch_size": 128,
        "optimizer": "sgd",
        "nesterov": True,
        "lr": 0.1,
        "weight_decay": 6e-4,
        "warmup": 1,
        "schedule": "step",
        "milestones": [0.4, 0.8, 0.9],
        "gamma": 0.2,
        "validation": 0.0,
    },
}
"""The network that stands for WRN-28-10, and its training. That of `paper` is what the authors' code has.

At scale cpu one network has capacity to spare, as the paper's has: of 4,500 rows it fits 99.9 % in 40 epochs. On all 50,000
rows it fits 88 % in the 8 epochs that two cores can give it, and has no room for a second function (by validation rows)."""
SEEDS = {"smoke": 1, "cpu": 3, "paper": 3}
WIDTH, HALF = 1.0, 0.5
"""Of the fast network at scale cpu. A run takes two minutes of one core, half as wide, for many methods, one."""


def configure(scale: str, method: Any, seed: int, width: float = WIDTH, **changes: Any) -> Json:
    """The settings of a run of a method at a scale. `width` is that of the fast network, at scale cpu."""
    own: Json = {"model": {"name": "fast-cnn", "width": width}} if scale == "cpu" else {}
    return FAST[scale] | own | {"method": method, "seed": seed} | changes


def describe_mimo(members: int, **options: Any) -> Json:
    """The method with M members; one member is one network. ρ is 0 unless it is given, as in the paper's CIFAR settings."""
    if members == 1:
        return {"name": "single"}
    return {"name": "mimo", "members": members, "input_repetition": 0.0} | options


def require_regime(accuracy: float) -> Precondition:
    """The condition of the paper's regime: one network that has nearly converged, with capacity to spare."""
    return Precondition(
        "one network is right on at least 93 % of the test rows (the paper's on 96 %)",
        f"one network is right on {format_percent(accuracy, 1)}",
        accuracy >= 0.93,
    )
