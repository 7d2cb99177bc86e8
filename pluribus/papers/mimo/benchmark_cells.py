"""The rows of tables 1 and 2 at every scale, as the options of their cells."""

from typing import Any

from ..recipe import Json
from .benchmark import (
    BATCH_ENSEMBLE,
    CORRUPTED,
    DETERMINISTIC,
    DROPOUT,
    ENSEMBLE,
    LONGER,
    MIMO,
    MULTIHEAD,
    SCALED,
    THIN,
    TREENET,
    TRIALS,
)
from .configurations import FAST, HALF, SEEDS

SINGLE: Json = {"name": "single"}
METHODS: dict[str, Json] = {
    DETERMINISTIC: SINGLE,
    DROPOUT: {"name": "single", "dropout": 0.1},
    MULTIHEAD: {"name": "multihead"},
    MIMO: {"name": "mimo"},
    TREENET: {"name": "treenet"},
    BATCH_ENSEMBLE: {"name": "batch-ensemble"},
    THIN: {"name": "deep-ensemble"},
    ENSEMBLE: {"name": "deep-ensemble"},
    LONGER: SINGLE,
    SCALED: SINGLE,
}
"""With the options of our defaults; those of multihead, MIMO, TreeNet and BatchEnsemble are tuned at scale cpu."""
PUBLISHED_METHODS: dict[str, Json] = {
    MULTIHEAD: {"name": "multihead", "members": 3},
    MIMO: {"name": "mimo", "members": 3, "input_repetition": 0.0, "batch_repetition": 4, "init": "fresh"},
    TREENET: {"name": "treenet", "members": 3, "split": "3"},
    BATCH_ENSEMBLE: {"name": "batch-ensemble", "members": 4, "spread": 0.5},
}
LONG = (MULTIHEAD, MIMO, TREENET, BATCH_ENSEMBLE)
"""Trained for 250 epochs in the paper, the others for 200."""
MODELS: dict[str, dict[str, Any]] = {
    "smoke": {"usual": "small-cnn:width=0.5", "thin": "small-cnn:width=0.25"},
    "cpu": {"usual": {"name": "fast-cnn", "width": HALF}, "thin": {"name": "fast-cnn", "width": HALF / 2}},
    "paper": {"usual": "wrn-28-10", "thin": {"name": "wrn", "depth": 28, "width": 5}},
}


def configure_row(scale: str, row: str, data: str | None) -> Json:
    """The settings of a row before tuning, without a seed."""
    settings = FAST[scale] | {"model": MODELS[scale]["thin" if row == THIN else "usual"], "method": METHODS[row]}
    if data is not None:
        settings["data"] = data
    if scale == "paper":
        settings["method"] = PUBLISHED_METHODS.get(row, METHODS[row])
        if row != MIMO:  # its 128 rows are repeated four times; theirs are 512 different ones
            settings |= {"batch_size": 512, "weight_decay": 4e-4, "epochs": 250 if row in LONG else 200}
        if row == SCALED:
            settings["validation"] = 0.1
    return settings


def list_cells(scale: str, data: str | None = None) -> dict[str, Json]:
    """The cells of a table at a scale: rows by seeds."""
    found: dict[str, Json] = {}
    for row in METHODS:
        settings = configure_row(scale, row, data)
        options: Json = {"training": settings, "trials": TRIALS[scale], "corrupted": CORRUPTED[scale]}
        options["base"] = configure_row(scale, DETERMINISTIC, data)
        if row in (THIN, ENSEMBLE):
            options["tuned_as"] = settings | {"method": SINGLE}
        if row == LONGER:
            options["as_long_as"] = configure_row(scale, MIMO, data)
        if row == SCALED:
            options["scaled"] = True
        found |= {f"{row}, seed {seed}": options | {"seed": seed} for seed in range(SEEDS[scale])}
    return found
