"""Interleaved timing: a repeat times every candidate once, in a new random order.

A moment in which the machine is busy therefore slows all candidates alike, and no candidate always runs after the same
neighbour. Ratios are taken within a repeat and summarised by their median and quartiles.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..metrics.intervals import quantile

Run = Callable[[], Any]
MIN_SECONDS = 5e-3
"""One measurement lasts at least this long."""


@dataclass(frozen=True)
class Ratio:
    """The median over repeats, and the quartiles: half of the repeats lie between them."""

    median: float
    low: float
    high: float


def time_interleaved(candidates: Mapping[str, Run], repeats: int, seed: int = 0) -> Iterator[dict[str, float]]:
    """Time all candidates in turns and yield, for each repeat, the seconds that one call of each took.

    `candidates` maps names to functions without arguments; `seed` decides the order within the repeats.

    >>> first, second = time_interleaved({"sum": lambda: sum(range(9)), "max": lambda: max(range(9))}, repeats=2)
    >>> sorted(first), first["sum"] > 0
    (['max', 'sum'], True)
    """
    times = {name: choose_repetitions(run) for name, run in candidates.items()}
    order = random.Random(seed)
    for _ in range(repeats):
        turn = order.sample(list(candidates), len(candidates))
        yield {name: time_call(candidates[name], times[name]) for name in turn}


def choose_repetitions(run: Run) -> int:
    """Warm `run` up, and return how many calls last `MIN_SECONDS`.

    Short calls are repeated, so that neither the resolution of the clock nor the state of the caches matters.
    """
    run()
    return max(1, round(MIN_SECONDS / max(time_call(run), 1e-7)))


def time_call(run: Run, times: int = 1) -> float:
    """Return the seconds of one call, averaged over `times` calls."""
    start = time.perf_counter()
    for _ in range(times):
        run()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def compute_ratios(own: Sequence[float], base: Sequence[float]) -> list[float]:
    """Divide the seconds of each repeat by the seconds of the base in the same repeat."""
    return [seconds / base_seconds for seconds, base_seconds in zip(own, base, strict=True)]


def summarize_ratios(own: Sequence[float], base: Sequence[float]) -> Ratio:
    """Return median and quartiles of the ratios, repeat by repeat.

    >>> summarize_ratios([2.0, 3.0, 8.0], [1.0, 1.0, 2.0])
    Ratio(median=3.0, low=2.5, high=3.5)
    """
    ratios = torch.tensor(compute_ratios(own, base), dtype=torch.double)
    return Ratio(quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))
