"""Training rows with weights, and batches in which every row appears as often as its weight says.

A weight of 2 must give exactly the network that the row twice would give, and a weight of 0 the one without the row. So equal
rows are merged, their weights added, and the rows sorted: then both data sets are the same table. An epoch is a line as long as
the weights in sum, cut into cells of length 1 (of the mean weight, if a weight is not whole), and each cell draws the row that
a random point in it belongs to. With whole weights every row is drawn exactly as often as its weight says, in a random order:
without weights, these are the usual shuffled epochs.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class WeightedRows(NamedTuple):
    """Different rows `x` `[N, F]`, sorted, with targets `y`, positive `weights`, and `counts` of the rows that were merged into
    each, `[N]` each."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    counts: np.ndarray

    def take(self, rows: np.ndarray) -> "WeightedRows":
        """Some of the rows."""
        return WeightedRows(*(column[rows] for column in self))

    def count_draws(self) -> int:
        """How many rows make an epoch: the weights in sum if all are whole, else as many rows as there were."""
        is_whole = bool((self.weights == np.round(self.weights)).all()) and self.weights.sum() < 2**53
        return int((self.weights if is_whole else self.counts).sum())


def merge_rows(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> WeightedRows:
    """Merge equal rows, and sort them.

    >>> rows = merge_rows(np.array([[2.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.0]), np.array([1.0, 1.0, 3.0]))
    >>> rows.x.ravel().tolist(), rows.weights.tolist()
    ([1.0, 2.0], [1.0, 4.0])
    """
    table = np.concatenate([x.astype(np.float64), y.reshape(-1, 1).astype(np.float64)], axis=1)
    merged, place, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    summed = np.bincount(place.ravel(), weights, minlength=len(merged))
    return WeightedRows(merged[:, :-1], merged[:, -1], summed, counts)


class WeightedBatches:
    """The batches of an epoch, as a loader for `pluribus.fit`: it draws from torch's generator, which `fit` seeds."""

    def __init__(self, x: Tensor, y: Tensor, rows: WeightedRows, size: int) -> None:
        self.x, self.y = x, y
        self.ends, self.draws = np.cumsum(rows.weights), rows.count_draws()
        self.size = min(size, self.draws)

    def __len__(self) -> int:
        full, rest = divmod(self.draws, self.size)
        return full + (rest > 1 or not full)  # a single row has no batch statistics

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        cells = torch.randperm(self.draws).numpy()
        points = (cells + torch.rand(self.draws, dtype=torch.double).numpy()) * (self.ends[-1] / self.draws)
        rows = torch.from_numpy(np.searchsorted(self.ends, points, side="right").clip(max=len(self.ends) - 1))
        for number in range(len(self)):
            own = rows[number * self.size : (number + 1) * self.size]
            yield self.x[own], self.y[own]
