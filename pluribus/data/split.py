"""Splitting rows into those to train on and those held out: for the test once, for validation by a run's seed.

Both splits are stratified: of a classification, every class gives the same share of its rows, and never its last one. They draw
their rows differently (the test rows by NumPy, the validation rows by torch), because recorded runs depend on these rows.
"""

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError


def check_share(name: str, value: object) -> float:
    """Return the option if it is a share of the rows, from 0 up to but not including 1. Raises: DataError if it is not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise DataError(f"{name} must be a share of the rows, from 0 up to but not including 1, got {value!r}")
    return float(value)


def split_rows(count: int, rows: int, seed: int, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Split row numbers into those to keep and `count` test rows, the same ones on every machine.

    Args: `rows` in all; `labels` `[rows]`, by which the split is stratified; without them all rows are one class.
    Returns: the row numbers to keep and those held out, both in ascending order. No class gives its last row away, so fewer
    than `count` may be held out. Raises: DataError if the seed is no whole number from 0 to 2**32 − 1.

    >>> keep, test = split_rows(2, 6, seed=0, labels=torch.tensor([0, 0, 0, 1, 1, 1]))
    >>> len(keep), test // 3
    (4, tensor([0, 1]))
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise DataError(f"seed must be a whole number from 0 up to but not including 2**32, got {seed!r}")
    # NumPy promises never to change this generator's numbers.
    order = np.random.RandomState(seed).permutation(rows)
    classes = np.zeros(rows, np.int64) if labels is None else labels.numpy()
    exact = count * np.bincount(classes) / rows
    quota = np.floor(exact).astype(int)
    largest = np.argsort(quota - exact, kind="stable")
    quota[largest[: count - quota.sum()]] += 1
    groups = [torch.from_numpy(order[classes[order] == label]) for label in range(len(quota))]
    return _hold_out(groups, quota.tolist())


def split_validation(share: float, rows: int, seed: int, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Split row numbers into training rows and the given share of validation rows.

    Args: `rows` in all; `labels` `[rows]`, by which the split is stratified; without them all rows are one class.
    Returns: the numbers of the training rows and of the validation rows, both in ascending order.

    >>> train, validation = split_validation(0.25, 8, seed=0, labels=torch.tensor([0] * 4 + [1] * 4))
    >>> len(train), validation // 4
    (6, tensor([0, 1]))
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.zeros(rows, dtype=torch.long) if labels is None else labels
    groups = [(labels == label).nonzero().flatten() for label in range(int(labels.max()) + 1 if rows else 0)]
    groups = [group[torch.randperm(len(group), generator=generator)] for group in groups]
    return _hold_out(groups, [round(len(group) * share) for group in groups])


def _hold_out(groups: list[Tensor], counts: list[int]) -> tuple[Tensor, Tensor]:
    """Hold out the first `counts` rows of every group, but never all of them."""
    counts = [min(count, max(len(group) - 1, 0)) for group, count in zip(groups, counts, strict=True)]
    kept = [group[count:] for group, count in zip(groups, counts, strict=True)]
    held_out = [group[:count] for group, count in zip(groups, counts, strict=True)]
    none = torch.zeros(0, dtype=torch.long)
    return torch.cat([none, *kept]).sort().values, torch.cat([none, *held_out]).sort().values
