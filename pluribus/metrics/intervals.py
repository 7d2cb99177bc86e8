"""Confidence intervals: quantiles, and bootstrap intervals over rows."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Interval(NamedTuple):
    """A value and the bounds of its interval.

    >>> print(Interval(0.5, 0.4, 0.61))
    0.5 [0.4, 0.61]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def bootstrap(
    rows: Tensor,
    statistic: Callable[[Tensor], Tensor | float] | None = None,
    *,
    share: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """The percentile interval of a statistic over resampled rows; without a statistic, of the mean of all values.

    Each of the `draws` takes N rows with replacement. They are taken one after the other, so that memory does not grow with
    the number of draws.

    Args: per-row values `[N, …]`; `statistic` maps `[N, …]` to a number; `share` of the draws lies between the bounds.
    Returns: the statistic of the rows themselves, and the bounds; all are NaN if the statistic is.
    Raises: ValueError if there are no rows.

    >>> bootstrap(torch.ones(50))
    Interval(value=1.0, low=1.0, high=1.0)
    """
    if not len(rows):
        raise ValueError("an interval needs at least one row")
    rows = rows.double()
    compute: Callable[[Tensor], Tensor | float] = statistic or torch.mean
    generator = torch.Generator().manual_seed(seed)
    picks = (torch.randint(len(rows), (len(rows),), generator=generator) for _ in range(draws))
    value = float(compute(rows))
    if math.isnan(value):  # draws without the row that is no number would give bounds
        return Interval(value, value, value)
    drawn = torch.tensor([float(compute(rows[pick])) for pick in picks], dtype=torch.double)
    return Interval(value, *central_interval(drawn, share))


def central_interval(values: Tensor | Sequence[float], share: float = 0.95) -> tuple[float, float]:
    """The two quantiles between which the middle `share` of the values `[N]` lies.

    >>> central_interval([0.0, 1.0, 2.0, 3.0, 4.0], 0.5)
    (1.0, 3.0)
    """
    return quantile(values, (1 - share) / 2), quantile(values, (1 + share) / 2)


def quantile(values: Tensor | Sequence[float], level: float) -> float:
    """The quantile of values `[N]` at a level from 0 to 1, linear between neighbours.

    Unlike `torch.quantile`, it copes with infinite values (the NLL of a target that was held impossible is one): between a
    finite and an infinite value the quantile is infinite. Raises: ValueError if there are no values.

    >>> quantile([4.0, 0.0, 1.0, 2.0], 0.75)
    2.5
    """
    ordered = torch.as_tensor(values, dtype=torch.double).flatten().sort().values
    if not len(ordered):
        raise ValueError("a quantile needs at least one value")
    place = level * (len(ordered) - 1)
    low, high = ordered[math.floor(place)].item(), ordered[math.ceil(place)].item()
    return low if low == high else (1 - place % 1) * low + place % 1 * high
