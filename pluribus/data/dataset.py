"""The data set in memory: rows, targets, and how rows become a network's inputs."""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.predictive import Task
from ..core.seeds import derive_seed
from .preparation import Pixels, Preparation
from .split import split_validation


@dataclass(frozen=True, eq=False)
class Part:
    """Inputs `[N, …]` (images as bytes `[N, C, H, W]`, or rows of numbers `[N, F]`) and targets `[N]`, whole or real.

    Real targets that were read from files are in double precision.

    Raises: DataError if there is not one target for each input.

    >>> len(Part(torch.zeros(3, 2), torch.tensor([0, 1, 1])))
    3
    """

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise DataError(f"there must be a target for each input, got {len(self.x)} inputs and {len(self.y)} targets")

    def __len__(self) -> int:
        return len(self.y)

    def take_rows(self, index: Tensor) -> "Part":
        """The rows with these numbers `[K]`, in this order."""
        return Part(self.x[index], self.y[index])


@dataclass(frozen=True, eq=False)
class Data:
    """A data set: rows to train on, rows to test on, and how they become a network's inputs.

    `train` is empty where a set has only test rows (out-of-distribution sets do), `test` where nothing was held out.

    >>> rows = Part(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))
    >>> data = Data("points", rows, rows, Preparation(), classes=("red", "blue"))
    >>> data.task, data.outputs, data.shape
    ('classification', 2, (2,))
    """

    name: str
    train: Part
    test: Part
    preparation: Preparation
    classes: tuple[str, ...] = ()
    """The names of the labels; none for a regression."""
    source: str = ""
    """Where it was read from, for people."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else people should know: checksums, rows left out."""

    @property
    def task(self) -> Task:
        return "classification" if self.classes else "regression"

    @property
    def outputs(self) -> int:
        """How many outputs a network needs, C."""
        return len(self.classes) or 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple((self.train if len(self.train) else self.test).x.shape[1:])

    @property
    def has_images(self) -> bool:
        return isinstance(self.preparation, Pixels)

    def split(self, share: float, seed: int) -> tuple[Part, Part]:
        """Split the training rows into training and validation rows; of a classification, the same share of every class.

        Raises: DataError if there are too few rows for both.
        """
        if share == 0:
            return self.train, take_no_rows(self.train)
        labels = self.train.y if self.task == "classification" else None
        rows, held_out = split_validation(share, len(self.train), seed, labels)
        if not len(rows) or not len(held_out):
            raise DataError(
                f"{self.name} has {len(self.train)} training rows: too few to hold {share:g} of them out for validation; "
                "use more rows, or set validation to 0"
            )
        return self.train.take_rows(rows), self.train.take_rows(held_out)

    def subsample(self, rows: int | None, seed: int = 0) -> "Data":
        """Keep at most this many training rows, drawn with the seed; None keeps all."""
        if rows is None or rows >= len(self.train):
            return self
        index = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(derive_seed(seed)))[:rows]
        return replace(self, train=self.train.take_rows(index.sort().values))


def check_data(data: Data) -> Data:
    """Return the data after the checks that every set must pass.

    Raises: DataError if there are no rows, if numbers are not finite, or if a label is out of range or has no training row.
    """
    source = data.source or data.name
    for name, part in (("training", data.train), ("test", data.test)):
        if len(part):
            _check_part(data, name, part, source)
    if not len(data.train) and not len(data.test):
        raise DataError(f"{source} holds no rows")
    return data


def _check_part(data: Data, name: str, part: Part, source: str) -> None:
    if part.x.is_floating_point() and not bool(torch.isfinite(part.x).all()):
        raise DataError(f"{source}: the {name} inputs hold NaN or infinity; clean the file, or leave the column out")
    if data.task == "regression":
        if not bool(torch.isfinite(part.y).all()):
            raise DataError(f"{source}: the {name} targets hold NaN or infinity; clean the file")
        return
    if data.outputs < 2:
        raise DataError(f"{source}: labels must be of at least two classes, got {data.classes[0]!r} alone")
    low, high = int(part.y.min()), int(part.y.max())
    if low < 0 or high >= data.outputs:
        wrong = low if low < 0 else high
        raise DataError(f"{source}: labels must be from 0 to {data.outputs - 1}, got {wrong} in the {name} labels")
    if name == "training":
        empty = [c for c, n in zip(data.classes, torch.bincount(part.y, minlength=data.outputs), strict=True) if not n]
        if empty:
            listed = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
            raise DataError(f"{source}: no training row has the class {listed}: every class needs at least one")


def take_no_rows(part: Part) -> Part:
    """An empty part with inputs and targets of the same kind."""
    return part.take_rows(torch.arange(0))


def number_classes(count: int) -> tuple[str, ...]:
    """Name classes by their numbers: "0", "1", …"""
    return tuple(str(i) for i in range(count))
