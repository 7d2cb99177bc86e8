"""Setting rows aside for the test, the same ones on every machine."""

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError


def share(name: str, value: object) -> float:
    """The option, if it is a share of the rows."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise DataError(f"{name} must be a share of the rows, from 0 up to but not including 1, got {value!r}")
    return float(value)


def aside(count: int, rows: int, seed: int, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`rows` numbers split into those to keep and `count` to set aside; with `labels`, every class in proportion.

    No class gives its last row away, so that fewer than `count` may be set aside.

    >>> keep, test = aside(2, 6, seed=0, labels=torch.tensor([0, 0, 0, 1, 1, 1]))
    >>> len(keep), test // 3
    (4, tensor([0, 1]))
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise DataError(f"seed must be a whole number from 0 up to but not including 2**32, got {seed!r}")
    # NumPy promises never to change this generator's numbers.
    order = np.random.RandomState(seed).permutation(rows)
    groups = np.zeros(rows, np.int64) if labels is None else labels.numpy()
    sizes = np.bincount(groups)
    exact = count * sizes / rows
    quota = np.floor(exact).astype(int)
    largest = np.argsort(quota - exact, kind="stable")
    quota[largest[: count - quota.sum()]] += 1
    quota = np.minimum(quota, np.maximum(sizes - 1, 0))
    chosen = np.concatenate([order[groups[order] == group][:some] for group, some in enumerate(quota)])
    mask = np.zeros(rows, bool)
    mask[chosen] = True
    return torch.from_numpy(np.flatnonzero(~mask)), torch.from_numpy(np.flatnonzero(mask))
