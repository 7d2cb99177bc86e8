"""What part of a batch a process holds, where several processes share it.

Process r of W takes the rows r, r + W, r + 2W … of every batch. Noise is drawn for the whole batch in every process, from the
same seed, and each takes the noise of its own rows: so a step has the same noise on one process and on many.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor


class Share(NamedTuple):
    """The rows of process `rank` of `world` in a batch of `rows`.

    >>> share = Share(rank=1, world=2, rows=5)
    >>> share.own, share.weight
    (2, 0.8)
    """

    rank: int
    world: int
    rows: int

    @property
    def own(self) -> int:
        """How many rows this process has."""
        return len(range(self.rank, self.rows, self.world))

    @property
    def positions(self) -> Tensor:
        """The places of the own rows in the batch, `[own]`.

        >>> Share(rank=1, world=2, rows=5).positions
        tensor([1, 3])
        """
        return torch.arange(self.rank, self.rows, self.world)

    @property
    def weight(self) -> float:
        """The factor of this process's mean loss with which the average over processes is the mean over the whole batch."""
        return self.own * self.world / self.rows

    def widen(self, shape: Sequence[int], axis: int = 0) -> Sequence[int]:
        """The shape for the whole batch of a tensor whose `axis` holds a multiple of the own rows."""
        return (*shape[:axis], shape[axis] // self.own * self.rows, *shape[axis + 1 :])

    def take(self, whole: Tensor, axis: int = 0, members: int = 1) -> Tensor:
        """The own rows of a tensor for the whole batch; `axis` holds, member by member, one or more entries for each row.

        >>> import torch
        >>> Share(rank=1, world=2, rows=3).take(torch.arange(6), members=2)
        tensor([1, 4])
        """
        each = whole.unflatten(axis, (members, self.rows, -1))
        return each[(slice(None),) * (axis + 1) + (slice(self.rank, None, self.world),)].flatten(axis, axis + 2)


_thread = threading.local()


def find_share(rows: int) -> Share | None:
    """The share that a batch of `rows` rows is in this thread, if it is one."""
    share: Share | None = getattr(_thread, "share", None)
    return share if share is not None and share.own == rows else None


@contextmanager
def use_share(share: Share) -> Iterator[None]:
    """Inside the block, a batch of as many rows as `share` has is this share of a larger batch."""
    before, _thread.share = getattr(_thread, "share", None), share
    try:
        yield
    finally:
        _thread.share = before
