"""Rows that come in parts, in one tensor.

A list of parts, joined in the end, would hold all rows twice. Each part in it would also pin the freed memory around it, so
that a process keeps several times what it needs.
"""

from collections.abc import Sequence

from torch import Tensor


class RowBuffer:
    """A tensor that is written in parts which follow one another on one axis, the rows.

    If the number of rows is known beforehand (`expected`), it is allocated once; else it grows by doubling.
    """

    def __init__(self, axis: int, expected: int) -> None:
        self.axis, self.expected, self.filled = axis, expected, 0
        self.tensor: Tensor | None = None

    def take_rows(self, shape: Sequence[int], like: Tensor) -> Tensor:
        """Room for the next rows, to be written into: a tensor of this shape, with the dtype and device of `like`."""
        count, before = shape[self.axis], self.tensor
        stop = self.filled + count
        if before is None or stop > before.shape[self.axis]:
            room = max(self.expected, stop) if before is None else max(2 * before.shape[self.axis], stop)
            self.tensor = like.new_empty([*shape[: self.axis], room, *shape[self.axis + 1 :]])
            if before is not None:
                self.tensor.narrow(self.axis, 0, self.filled).copy_(before.narrow(self.axis, 0, self.filled))
        assert self.tensor is not None
        place = self.tensor.narrow(self.axis, self.filled, count)
        self.filled = stop
        return place

    def get_rows(self) -> Tensor:
        """All rows that were written."""
        assert self.tensor is not None
        return self.tensor.narrow(self.axis, 0, self.filled).contiguous()
