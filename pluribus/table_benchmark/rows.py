"""The rows of one split of a table, which all contenders get alike.

Numbers are normalised by the quantiles of the training rows and targets are standardised, which trees do not mind and networks
need. A fifth of the training rows is for validation: it chooses epochs, trees and trials, and estimates the noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.seeds import derive_seed
from ..data import load
from ..data.catalog import SETS
from ..data.dataset import Part
from ..data.table import OPTIONS
from ..data.table_files import SUFFIXES

VALIDATION = 0.2
SPLIT, ROWS = 6, 7
"""Which streams of a split's seed the validation rows and the rows of a smaller table are drawn from."""
UCI_SPLITS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs `[N, F]` and standardised targets `[N]`; `target` brings these back to their units."""

    train: Part
    validation: Part
    test: Part
    column_widths: tuple[int, ...]
    target: tuple[float, float]


def check_table(choice: Mapping[str, Any], data_dir: str | None) -> None:
    """Raise DataError if a table has no splits or is no regression; its file is read once."""
    load_rows(choice, data_dir, 0, None)


def count_splits(choice: Mapping[str, Any], asked: int) -> int:
    """How many splits a table has: a set of the UCI repository has its ten standard ones."""
    return min(asked, UCI_SPLITS) if choice["name"].startswith("uci-") else asked


def load_rows(choice: Mapping[str, Any], data_dir: str | None, split: int, most: int | None) -> Rows:
    """Read the rows of one split, at most so many of them for training and validation.

    Raises: DataError if the table has no splits, or is no regression, or cannot be read.
    """
    name, options = choice["name"], {key: value for key, value in choice.items() if key != "name"}
    is_file = name not in SETS and Path(name).expanduser().name.lower().endswith(SUFFIXES)
    known = SETS[name].options if name in SETS else OPTIONS if is_file else {}
    drawn = next((option for option in ("split", "seed") if option in known), None)
    if drawn is None and (name in SETS or Path(name).expanduser().exists()):
        raise DataError(f"{name} has no splits of its rows: name a table (.csv, .tsv or .parquet) or one of the sets uci-…")
    for option in ("split", "seed", "test_mask"):
        if option in options:
            raise DataError(f"{option} is chosen by the benchmark, which runs over several splits: leave it out")
    more = {"numbers": "quantile"} if "numbers" in known else {}
    data = load(name, data_dir, **(more | options), **({drawn: split} if drawn else {}))
    if data.task != "regression":
        raise DataError(f"{data.name} is a classification, and the table benchmark is of regressions: name another table")
    data = data.subsample(most, derive_seed(split, ROWS))
    train, validation = data.split(VALIDATION, derive_seed(split, SPLIT))

    def scale(part: Part) -> Part:
        return Part(data.preparation(part.x), data.preparation.scale_targets(part.y))

    widths = data.preparation.column_widths or (0,) * data.shape[0]
    return Rows(scale(train), scale(validation), scale(data.test), widths, data.preparation.target)


def unscale(values: Tensor, rows: Rows) -> Tensor:
    """Standardised targets in their units, in double precision."""
    return values.double() * rows.target[1] + rows.target[0]


def list_numbers(rows: Rows) -> list[int]:
    """The places of columns of numbers in a row."""
    return [start for start, width in zip(list_starts(rows), rows.column_widths, strict=True) if not width]


def list_starts(rows: Rows) -> list[int]:
    """Where each column begins in a row."""
    starts, place = [], 0
    for width in rows.column_widths:
        starts.append(place)
        place += max(1, width)
    return starts


def number_categories(x: Tensor, rows: Rows) -> Tensor:
    """The categories of one-hot columns as whole numbers `[N, columns]`; an unknown one gets the number after the last."""
    found = []
    for start, width in zip(list_starts(rows), rows.column_widths, strict=True):
        if width:
            group = x[:, start : start + width]
            found.append(torch.where(group.sum(1) > 0, group.argmax(1), width))
    return torch.stack(found, 1) if found else x.new_zeros(len(x), 0).long()
