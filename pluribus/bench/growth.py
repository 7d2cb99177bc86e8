"""The growth of costs with the number of members, M, and of draws, K: a straight line through the medians.

    ratio ≈ slope · n + intercept,     off = max |ratio − line|

The base network is one member, so a line in M begins at a ratio of one. The memory of a prediction grows with K only until
`predict` takes fewer rows at a time.
"""

import statistics
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core.spec import Spec, list_methods
from .measurement import Build, Candidate, CostRatios, Job, Json, Measurement, convert_with
from .method_sizes import build_benchmark_spec
from .networks import NETWORKS
from .table import TABLE_WORKLOADS
from .workloads import Workload


@dataclass(frozen=True)
class Axis:
    """The sizes at which methods of this `growth_axis` are measured."""

    letter: str
    counts: tuple[int, ...]
    workloads: tuple[Workload, ...]
    starts_at_base: bool
    """Whether the base network is the first point."""


AXES = (
    Axis("M", (2, 4, 8, 16), TABLE_WORKLOADS, starts_at_base=True),
    Axis("K", (1, 2, 5, 10, 20, 50, 100, 200), ("forward",), starts_at_base=False),
)
DEFAULT_NETWORKS = ("lenet5",)
"""The networks on which growth is measured, unless others are named."""
BASE_POINT: Json = {"at": 1, "time": {"median": 1.0, "low": 1.0, "high": 1.0}, "memory": 1.0, "flops": 1.0}


@dataclass(frozen=True)
class Line:
    """A straight line through points."""

    slope: float
    intercept: float
    off: float
    """The largest deviation of a point from the line, in either direction."""
    at: int
    """The point with that deviation."""


def fit_line(points: Sequence[tuple[int, float]]) -> Line:
    """Fit a line by least squares to points (n, ratio).

    >>> fit_line([(1, 1.0), (2, 3.0), (3, 5.0)])
    Line(slope=2.0, intercept=-1.0, off=0.0, at=1)
    """
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    off, at = max(((abs(y - slope * x - intercept), x) for x, y in points), key=lambda found: found[0])
    return Line(slope, intercept, off, at)


def list_growth_keys(
    networks: Collection[str] = NETWORKS, methods: Collection[str] | None = None
) -> list[tuple[str, str, str, Workload]]:
    """List (network, method, letter of the axis, workload) of the rows, in their order."""
    return [
        (network, method, axis.letter, workload)
        for network in NETWORKS
        for axis in AXES
        for method in list_methods(methods)
        for workload in axis.workloads
        if network in networks and Spec.registry[method].growth_axis == axis.letter
    ]


def plan_growth(networks: Collection[str], methods: Collection[str]) -> list[Job]:
    """Plan one measurement for each method and workload: the base network, and all sizes of the method."""
    return [_plan_row(*key) for key in list_growth_keys(networks, methods)]


def _plan_row(network: str, method: str, letter: str, workload: Workload) -> Job:
    axis = next(axis for axis in AXES if axis.letter == letter)
    candidates = tuple(Candidate(str(count), _convert_at_size(method, count)) for count in axis.counts)
    key = {"network": network, "method": method, "axis": letter, "work": workload}

    def make_rows(ratios: dict[str, CostRatios]) -> list[Json]:
        points: list[Json] = [BASE_POINT] if axis.starts_at_base else []
        points += [{"at": count} | ratios[str(count)].to_json() for count in axis.counts]
        return [key | {"points": points, "lines": fit_lines(points)}]

    return Job(f"{method} with {letter}", Measurement(NETWORKS[network], workload, candidates), make_rows)


def _convert_at_size(method: str, count: int) -> Build:
    option = Spec.registry[method].size_option
    if option is None:
        raise TypeError(f"{method} has a growth_axis and no size_option: its spec must name the option that grows")
    options: dict[str, Any] = {option: count}
    return convert_with(replace(build_benchmark_spec(method), **options))


def fit_lines(points: list[Json]) -> Json:
    """Fit lines to time, memory and FLOPs of the points; None where some of the numbers are not known."""
    found: Json = {"time": asdict(fit_line([(point["at"], point["time"]["median"]) for point in points]))}
    for name in ("memory", "flops"):
        known = [(point["at"], point[name]) for point in points if point[name] is not None]
        found[name] = asdict(fit_line(known)) if len(known) == len(points) else None
    return found
