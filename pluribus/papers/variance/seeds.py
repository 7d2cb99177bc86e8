"""Means over seeds, and their intervals by Student's t.

A cell of a network that was trained with several seeds is called `<row>, seed <number>`; a cell without a seed in its name is a
row with one seed. Two rows are compared seed by seed.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from ..recipe import Found, Json

SEEDS = {"smoke": (1,), "cpu": (1, 2, 3), "paper": (1, 2, 3)}
"""Seed 0 is left out: settings and rules were chosen on it."""


def list_seeds(scale: str, is_control: bool) -> tuple[int, ...]:
    """Return the seeds of a row; a control, which is compared with the same seed of another row, has the first one alone."""
    return SEEDS[scale][:1] if is_control else SEEDS[scale]


class Estimate(NamedTuple):
    """A mean over seeds, and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def margin(self) -> float | None:
        """Half of the width of the interval; None for one seed."""
        half = self.high - self.value
        return half if math.isfinite(half) else None


def group_seeds(found: Found) -> dict[str, dict[int, Json]]:
    """Return the cells of every row by seed.

    >>> group_seeds({"layer, seed 1": {"elbo": -3.0}, "layer, seed 2": {"elbo": -4.0}, "weight": {"elbo": -9.0}})
    {'layer': {1: {'elbo': -3.0}, 2: {'elbo': -4.0}}, 'weight': {0: {'elbo': -9.0}}}
    """
    rows: dict[str, dict[int, Json]] = {}
    for name, cell in found.items():
        row, _, seed = name.rpartition(", seed ")
        rows.setdefault(row or name, {})[int(seed) if row else 0] = cell
    return rows


def estimate(values: Iterable[float]) -> Estimate:
    """Return the mean of values, one a seed, and its 95 % interval by Student's t; one value has an infinite interval.

    >>> [round(number, 3) for number in estimate([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    from scipy.stats import t

    numbers = np.array(list(values), dtype=float)
    value, count = mean(numbers.tolist()), len(numbers)
    if count < 2:
        return Estimate(value, -math.inf, math.inf)
    half = float(t.ppf(0.975, count - 1)) * float(numbers.std(ddof=1)) / math.sqrt(count)
    return Estimate(value, value - half, value + half)


def take(row: dict[int, Json], key: str) -> list[float]:
    """The values of a key in the cells of a row, in the order of their seeds."""
    return [row[seed][key] for seed in sorted(row)]


def average(row: dict[int, Json], key: str) -> float:
    """The mean of a key over the seeds of a row."""
    return mean(take(row, key))


def compare(ours: dict[int, Json], theirs: dict[int, Json], key: str, against: str | None = None) -> Estimate:
    """Return the mean of ours − theirs over the seeds that both have, with its interval; `against` is the key of theirs."""
    seeds = sorted(ours.keys() & theirs.keys())
    return estimate(ours[seed][key] - theirs[seed][against or key] for seed in seeds)


def format_points(difference: Estimate, digits: int = 2) -> str:
    """Return a difference of shares in points.

    >>> format_points(Estimate(0.01, 0.005, 0.015)), format_points(Estimate(0.01, -math.inf, math.inf))
    ('+1.00 points (+0.50 to +1.50)', '+1.00 points (no interval)')
    """
    value, low, high = (f"{100 * number:+.{digits}f}" for number in difference)
    return f"{value} points ({f'{low} to {high}' if difference.margin is not None else 'no interval'})"


def format_share(found: Estimate, digits: int = 2) -> str:
    """Return a share as a percentage, with its interval.

    >>> format_share(Estimate(0.99, 0.98, 1.0)), format_share(Estimate(0.99, -math.inf, math.inf))
    ('99.00 % (98.00 to 100.00)', '99.00 %')
    """
    value, low, high = (f"{100 * number:.{digits}f}" for number in found)
    return f"{value} %" + (f" ({low} to {high})" if found.margin is not None else "")


def tabulate_share(row: dict[int, Json], keys: Sequence[str]) -> Json:
    """The columns of shares in percent, and for each `<key>_margin`, half of the width of its interval, if there is one."""
    columns: Json = {}
    for key in keys:
        found = estimate(take(row, key))
        columns[key] = 100 * found.value
        columns[f"{key}_margin"] = None if found.margin is None else 100 * found.margin
    return columns
