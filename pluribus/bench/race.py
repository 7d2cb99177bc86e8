"""Interleaved timing: a repeat times every contestant once, in a new random order.

So a busy moment of the machine hits all alike, and nobody always runs after the same neighbour. The ratio of each repeat is to
the base of that repeat; what is told is the median of the ratios, and the middle half of them.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis.cost import SLICE, timed
from ..metrics.intervals import quantile

Run = Callable[[], Any]


@dataclass(frozen=True)
class Ratio:
    """The median over repeats, and the quartiles: half of the repeats lie between them."""

    median: float
    low: float
    high: float


def race(contestants: Mapping[str, Run], repeats: int, seed: int = 0) -> Iterator[dict[str, float]]:
    """Repeat by repeat, the seconds that every contestant took."""
    # Short ones are run several times, so that neither the clock's grain nor what the last one left in the caches matters.
    times = {name: laps(run) for name, run in contestants.items()}
    order = random.Random(seed)
    for _ in range(repeats):
        turn = order.sample(list(contestants), len(contestants))
        yield {name: timed(contestants[name], times[name]) for name in turn}


def laps(run: Run) -> int:
    """How often to run so that it lasts a slice; by the way it is warmed up."""
    run()
    return max(1, round(SLICE / max(timed(run), 1e-7)))


def ratio(own: Sequence[float], base: Sequence[float]) -> Ratio:
    """
    >>> ratio([2.0, 3.0, 8.0], [1.0, 1.0, 2.0])
    Ratio(median=3.0, low=2.5, high=3.5)
    """
    ratios = [after / before for after, before in zip(own, base, strict=True)]
    return Ratio(quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))
