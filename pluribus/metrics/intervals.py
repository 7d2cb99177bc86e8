"""How far a number can be trusted: bootstrap intervals over rows."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Interval(NamedTuple):
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def bootstrap(
    rows: Tensor,
    statistic: Callable[[Tensor], Tensor] | None = None,
    *,
    share: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """The percentile interval of a statistic of per-row values `[N, …]`; without one, of their mean.

    `statistic` maps `[N, …]` to a number. Means are drawn all at once.

    >>> bootstrap(torch.ones(50))
    Interval(value=1.0, low=1.0, high=1.0)
    """
    if not len(rows):
        raise ValueError("an interval needs at least one row")
    rows = rows.double()
    generator = torch.Generator().manual_seed(seed)
    if statistic is None:
        value = rows.mean().item()
        found = torch.stack([rows[torch.randint(len(rows), (len(rows),), generator=generator)].mean() for _ in range(draws)])
    else:
        value = float(statistic(rows))
        picks = (torch.randint(len(rows), (len(rows),), generator=generator) for _ in range(draws))
        found = torch.tensor([float(statistic(rows[pick])) for pick in picks], dtype=torch.double)
    return Interval(value, _quantile(found, (1 - share) / 2), _quantile(found, (1 + share) / 2))


def _quantile(values: Tensor, level: float) -> float:
    """Linear between neighbours. Not `torch.quantile`, which makes nan of infinite ones, as an impossible target has."""
    ordered, place = values.sort().values, level * (len(values) - 1)
    low, high = ordered[math.floor(place)].item(), ordered[math.ceil(place)].item()
    return low if low == high else (1 - place % 1) * low + place % 1 * high
