"""Batches in an order that depends on the seed and the epoch alone, so that a run can be resumed at any batch.

The batch size is that of all processes together: each process takes its share of the rows of every batch (or, if `whole`, all
of them), so that a run on two processes takes the same steps as on one.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from ..core import pytrees
from ..core.errors import DataError
from ..core.seeds import derive_seed, set_seed
from ..core.shares import Share
from .augmentation import alternate_flips, augment, draw_augmentation
from .dataset import Part
from .preparation import Preparation

ORDER, AUGMENTATION, FLIPS = 1, 2, 3  # places of the seed


class Batch(NamedTuple):
    """Inputs `[B, …]`, targets `[B]`, and the share of the batch that this process has."""

    x: Any
    y: Tensor
    share: Share


class Batches(ABC):
    """The batches of an epoch. Set `epoch` and `start` (the batch to begin with) before iterating.

    Process `rank` of `world` gets its share of the rows; if `whole`, all rows, of which it has to take its share itself. A
    batch has `least` rows or more.
    """

    epoch = 0
    start = 0
    rank = 0
    world = 1
    whole = False
    least = 1

    def __iter__(self) -> Iterator[Batch]:
        start, self.start = self.start, 0  # not earlier, because Lightning makes iterators that it never uses
        yield from self.batches(start)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batches(self, start: int) -> Iterator[Batch]:
        """The batches of this epoch from number `start` on."""

    def get_share(self, rows: int) -> Share:
        """This process's share of a batch of `rows` rows. Raises: DataError if a process has no row."""
        if rows < self.world:
            raise DataError(f"a batch of {rows} rows cannot be shared by {self.world} processes: use larger batches")
        return Share(self.rank, self.world, rows)


class TensorBatches(Batches):
    """Batches of rows that are in memory: shuffled for training, else every row once and in order.

    Raises: DataError if there are no rows.

    >>> batches = TensorBatches(Part(torch.zeros(5, 2), torch.arange(5)), 2, Preparation())
    >>> [batch.y.tolist() for batch in batches]
    [[0, 1], [2, 3], [4]]
    """

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
        # One row has no batch statistics. A shuffled epoch leaves such a rest out (other rows in every epoch); otherwise it
        # joins the last batch, so that every process has rows.
        return full + (rest >= max(self.least, self.world, 2 if self.shuffled else 1))

    def batches(self, start: int) -> Iterator[Batch]:
        count = len(self.part)
        order = torch.arange(count)
        if self.shuffled:
            order = torch.randperm(count, generator=torch.Generator().manual_seed(derive_seed(self.seed, ORDER, self.epoch)))
        for number in range(start, len(self)):
            last = not self.shuffled and number == len(self) - 1
            rows = order[number * self.size :] if last else order[number * self.size : (number + 1) * self.size]
            taken = slice(None) if self.whole else slice(self.rank, None, self.world)
            own = rows[taken]
            x = self.part.x[own]
            if self.augmentation != "none":
                generator = torch.Generator().manual_seed(derive_seed(self.seed, AUGMENTATION, self.epoch, number))
                drawn = draw_augmentation(self.augmentation, len(rows), generator)
                if "alternate" in self.augmentation:
                    drawn[:, 2] = alternate_flips(rows, self.epoch, derive_seed(self.seed, FLIPS) % 2**31)
                x = augment(x, drawn[taken], self.augmentation)
            share = self.get_share(len(rows))
            yield Batch(self.preparation(x), self.preparation.scale_targets(self.part.y[own]), share)


class LoaderBatches(Batches):
    """Batches of the user's own loader, for example a DataLoader: any iterable of (x, y) that can be iterated again.

    Whatever the loader draws for a batch (from torch, NumPy, Python, or a generator of its own) is drawn after seeding for that
    batch, so it repeats. Only workers that persist from epoch to epoch have a state that cannot be set: then a resumed run is
    not exactly the same. Raises: TypeError if the loader has no length, ValueError if that is 0.

    >>> batches = LoaderBatches([(torch.zeros(2, 3), torch.tensor([0, 1]))])
    >>> len(batches), next(iter(batches)).y
    (1, tensor([0, 1]))
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
        # A DataLoader draws its workers' seeds when its iterator is made.
        with seeded_randomness(derive_seed(self.seed, ORDER, self.epoch), self.loader):
            iterator = iter(self.loader)
        for number in range(self.count):
            with seeded_randomness(derive_seed(self.seed, ORDER, self.epoch, number), self.loader):
                try:
                    x, y = next(iterator)
                except StopIteration:
                    return
            if number < start:
                continue
            share = self.get_share(len(y))
            if self.world > 1 and not self.whole:
                x = pytrees.map_tensors(lambda leaf: leaf[self.rank :: self.world], x)
                y = y[self.rank :: self.world]
            yield Batch(x, y, share)


@contextmanager
def seeded_randomness(seed: int, loader: Any) -> Iterator[None]:
    """Seed torch, NumPy, Python and the loader's own generators, and restore the state of the first three afterwards."""
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
