"""How costs grow with the number of members, M, and of draws, K: a straight line through the medians.

    ratio ≈ slope · n + intercept,     off = max |ratio − line|

The base network is one member, so a line in M begins at a ratio of one. The memory of an answer does not grow with K beyond
what is answered at once: `predict` takes fewer rows at a time instead.
"""

import statistics
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from .cases import METHODS, TABLED
from .heat import Entry, Heat, Job, Json, Measured, converted
from .networks import NETWORKS
from .work import Work


@dataclass(frozen=True)
class Axis:
    """`options` has, for each method, the option that counts."""

    letter: str
    counts: tuple[int, ...]
    works: tuple[Work, ...]
    options: dict[str, str]
    based: bool
    """Whether the base network is the first point."""


MEMBERS = ("batch-ensemble", "mimo", "mixture", "multihead", "treenet", "deep-ensemble")
AXES = (
    Axis("M", (2, 4, 8, 16), TABLED, {"inner": "copies"} | dict.fromkeys(MEMBERS, "members"), based=True),
    Axis("K", (1, 2, 5, 10, 20, 50, 100, 200), ("forward",), dict.fromkeys(("mc-dropout", "variance"), "samples"), based=False),
)
USUAL = ("lenet5",)
"""Where growth is measured, unless networks are named."""


@dataclass(frozen=True)
class Line:
    slope: float
    intercept: float
    off: float
    """The largest deviation from the line, either way."""
    at: int
    """Where that is."""


def line(points: Sequence[tuple[int, float]]) -> Line:
    """By least squares.

    >>> line([(1, 1.0), (2, 3.0), (3, 5.0)])
    Line(slope=2.0, intercept=-1.0, off=0.0, at=1)
    """
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    off, at = max(((abs(y - slope * x - intercept), x) for x, y in points), key=lambda found: found[0])
    return Line(slope, intercept, off, at)


def growth(networks: Collection[str], methods: Collection[str]) -> list[Job]:
    """A heat for each method: the base, and all of its sizes."""
    return [
        _grown(network, method, axis, work)
        for network in NETWORKS
        for axis in AXES
        for method in METHODS
        for work in axis.works
        if network in networks and method in methods and method in axis.options
    ]


def _grown(network: str, method: str, axis: Axis, work: Work) -> Job:
    def sized(count: int) -> Any:
        return converted(replace(METHODS[method], **{axis.options[method]: count}))

    heat = Heat(NETWORKS[network], work, tuple(Entry(str(count), sized(count)) for count in axis.counts))
    about = {"network": network, "method": method, "axis": axis.letter, "work": work}

    def rows(found: dict[str, Measured]) -> list[Json]:
        points: list[Json] = [{"at": count} | found[str(count)].json() for count in axis.counts]
        if axis.based:
            points.insert(0, {"at": 1, "time": {"median": 1.0, "low": 1.0, "high": 1.0}, "memory": 1.0, "flops": 1.0})
        return [about | {"points": points, "lines": lines(points)}]

    return Job(f"{method} with {axis.letter}", heat, rows)


def lines(points: list[Json]) -> Json:
    """Of time, memory and FLOPs; None where some could not be counted."""
    found: Json = {"time": asdict(line([(point["at"], point["time"]["median"]) for point in points]))}
    for name in ("memory", "flops"):
        known = [(point["at"], point[name]) for point in points if point[name] is not None]
        found[name] = asdict(line(known)) if len(known) == len(points) else None
    return found
