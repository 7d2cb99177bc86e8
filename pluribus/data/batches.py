"""Batches in an order that is a function of the seed and the epoch alone, so that a run can go on from any of them.

The batch size is that of all processes together: each takes its share of the rows of every batch, so that the same run on
two processes takes the same steps.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from ..core import nested
from ..core.errors import DataError
from ..core.seeds import derive_seed, set_seed
from . import augment
from .dataset import Part
from .preparation import Preparation

ORDER, AUGMENTATION = 1, 2  # places of the seed


class Batch(NamedTuple):
    """Inputs, targets, and what this process's mean loss must be weighted by, so that the processes' average is the batch's."""

    x: Any
    y: Tensor
    weight: float = 1.0


class Batches(ABC):
    """The batches of an epoch. Set `epoch` and `start` (the batch to begin with) before the first one is taken."""

    epoch = 0
    start = 0
    rank = 0
    world = 1

    def __iter__(self) -> Iterator[Batch]:
        start, self.start = self.start, 0  # only now: Lightning makes iterators that it never uses
        yield from self.batches(start)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batches(self, start: int) -> Iterator[Batch]: ...

    def weight(self, rows: int) -> float:
        if rows < self.world:
            raise DataError(f"a batch of {rows} rows cannot be shared by {self.world} processes: use larger batches")
        own = len(range(self.rank, rows, self.world))
        return own * self.world / rows


class Stored(Batches):
    """Batches of rows that are in memory. Shuffled means: to train by; else every row once, in order."""

    def __init__(
        self,
        part: Part,
        size: int,
        preparation: Preparation,
        *,
        seed: int = 0,
        shuffled: bool = False,
        augmentation: str = "none",
    ) -> None:
        if not len(part):
            raise DataError("there are no rows to make batches of")
        self.part, self.size, self.preparation = part, min(size, len(part)), preparation
        self.seed, self.shuffled, self.augmentation = seed, shuffled, augmentation

    def __len__(self) -> int:
        full, rest = divmod(len(self.part), self.size)
        # A row alone has no batch statistics: of a shuffled epoch such a rest is left out, other rows every time; else it
        # joins the last batch, so that every process has rows.
        return full + (rest >= (2 * self.world if self.shuffled else self.world))

    def batches(self, start: int) -> Iterator[Batch]:
        count = len(self.part)
        order = torch.arange(count)
        if self.shuffled:
            order = torch.randperm(count, generator=torch.Generator().manual_seed(derive_seed(self.seed, ORDER, self.epoch)))
        for number in range(start, len(self)):
            last = not self.shuffled and number == len(self) - 1
            rows = order[number * self.size :] if last else order[number * self.size : (number + 1) * self.size]
            own = rows[self.rank :: self.world]
            x = self.part.x[own]
            if self.augmentation != "none":
                generator = torch.Generator().manual_seed(derive_seed(self.seed, AUGMENTATION, self.epoch, number))
                x = augment.augmented(x, augment.draws(self.augmentation, len(rows), generator)[self.rank :: self.world])
            yield Batch(self.preparation(x), self.preparation.scaled(self.part.y[own]), self.weight(len(rows)))


class Given(Batches):
    """Batches of somebody's own loader, a DataLoader say: any iterable of (x, y) that begins anew every time.

    Whatever it draws for a batch (from torch, NumPy, Python, a generator of its own) it draws after that batch's own seed, and
    so repeats. Only workers that persist from epoch to epoch keep a state that cannot be told: resuming is not exact then.
    """

    def __init__(self, loader: Iterable[Any], seed: int = 0) -> None:
        self.loader, self.seed = loader, seed
        try:
            self.count = len(loader)  # type: ignore[arg-type]
        except TypeError as error:
            raise TypeError(f"a loader must have a length, got {type(loader).__name__} without one") from error
        if self.count == 0:
            raise ValueError("the loader has no batches")

    def __len__(self) -> int:
        return self.count

    def batches(self, start: int) -> Iterator[Batch]:
        with drawing(derive_seed(self.seed, ORDER, self.epoch), self.loader):  # a DataLoader draws its workers' seeds at once
            iterator = iter(self.loader)
        for number in range(self.count):
            with drawing(derive_seed(self.seed, ORDER, self.epoch, number), self.loader):
                try:
                    x, y = next(iterator)
                except StopIteration:
                    return
            if number < start:
                continue
            rows = len(y)
            if self.world > 1:
                x = nested.map_tensors(lambda leaf: leaf[self.rank :: self.world], x)
                y = y[self.rank :: self.world]
            yield Batch(x, y, self.weight(rows))


@contextmanager
def drawing(seed: int, loader: Any) -> Iterator[None]:
    """Whatever the loader draws meanwhile is a function of the seed; torch's, NumPy's and Python's state is then as before."""
    sampler = getattr(loader, "batch_sampler", None)
    places = (loader, getattr(loader, "sampler", None), sampler, getattr(sampler, "sampler", None))
    own = [generator for place in places if isinstance(generator := getattr(place, "generator", None), Generator)]
    before = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        set_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        for generator in own:
            generator.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])
