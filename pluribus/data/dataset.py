"""What a data set is here: rows in memory, and what it takes to feed them to a network."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.predictive import Task
from ..core.seeds import derive_seed
from .preparation import Pixels, Preparation


@dataclass(frozen=True, eq=False)
class Part:
    """Inputs `[N, …]` (images as bytes `[N, C, H, W]`, or rows of numbers `[N, F]`) and targets `[N]`, whole or real."""

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise DataError(f"there must be a target for each input, got {len(self.x)} inputs and {len(self.y)} targets")

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, index: Tensor) -> "Part":
        return Part(self.x[index], self.y[index])


@dataclass(frozen=True, eq=False)
class Data:
    """A data set: what to learn from, what to be judged by, and how rows become a network's inputs.

    `train` is empty where a set has only test rows (out-of-distribution sets do), `test` where nothing was set aside.
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
    """What else is worth telling: checksums, rows left out."""

    @property
    def task(self) -> Task:
        return "classification" if self.classes else "regression"

    @property
    def outputs(self) -> int:
        """How many numbers the network answers with, C."""
        return len(self.classes) or 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        return tuple((self.train if len(self.train) else self.test).x.shape[1:])

    @property
    def images(self) -> bool:
        return isinstance(self.preparation, Pixels)

    def split(self, share: float, seed: int) -> tuple[Part, Part]:
        """Training rows, and validation rows set aside from them; of a classification, the same share of every class."""
        if share == 0:
            return self.train, self.train.rows(torch.arange(0))
        generator = torch.Generator().manual_seed(seed)
        if self.task == "classification":
            groups = [(self.train.y == label).nonzero().flatten() for label in range(self.outputs)]
        else:
            groups = [torch.arange(len(self.train))]
        kept, aside = [], []
        for group in groups:
            group = group[torch.randperm(len(group), generator=generator)]
            count = min(round(len(group) * share), max(len(group) - 1, 0))  # no class gives its last row away
            aside.append(group[:count])
            kept.append(group[count:])
        rows, others = torch.cat(kept).sort().values, torch.cat(aside).sort().values
        if not len(rows) or not len(others):
            raise DataError(
                f"{self.name} has {len(self.train)} training rows: too few to set {share:g} of them aside, "
                "as rows to judge by while training: use more, or set validation to 0"
            )
        return self.train.rows(rows), self.train.rows(others)

    def limited(self, rows: int | None, seed: int = 0) -> "Data":
        """At most so many training rows, drawn with the seed."""
        if rows is None or rows >= len(self.train):
            return self
        index = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(derive_seed(seed)))[:rows]
        return replace(self, train=self.train.rows(index.sort().values))


def checked(data: Data) -> Data:
    """The data, after the checks that every set must pass: labels in range, none absent, numbers finite."""
    for name, part in (("training", data.train), ("test", data.test)):
        if not len(part):
            continue
        where = data.source or data.name
        if part.x.is_floating_point() and not bool(torch.isfinite(part.x).all()):
            raise DataError(f"{where}: the {name} inputs hold NaN or infinity; clean the file, or leave the column out")
        if data.task == "regression":
            if not bool(torch.isfinite(part.y).all()):
                raise DataError(f"{where}: the {name} targets hold NaN or infinity; clean the file")
            continue
        low, high = int(part.y.min()), int(part.y.max())
        if low < 0 or high >= data.outputs:
            wrong = low if low < 0 else high
            raise DataError(f"{where}: labels must be from 0 to {data.outputs - 1}, got {wrong} in the {name} labels")
        if name == "training":
            empty = [c for c, n in zip(data.classes, torch.bincount(part.y, minlength=data.outputs), strict=True) if not n]
            if empty:
                listed = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
                raise DataError(f"{where}: no training row has the class {listed}: every class needs at least one")
    if not len(data.train) and not len(data.test):
        raise DataError(f"{data.source or data.name} holds no rows")
    return data


def empty_like(part: Part) -> Part:
    """No rows of the same kind."""
    return part.rows(torch.arange(0))


def numbered(count: int) -> Sequence[str]:
    return tuple(str(i) for i in range(count))
