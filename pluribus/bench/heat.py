"""A heat: the base network and what is made of it, the same work on the same batch."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from ..analysis.cost import ratio as over
from ..core.convert import ensemble
from ..core.spec import Spec
from .networks import Network
from .race import Ratio, race, ratio
from .work import TITLES, Work, flops, memory, timeable

BASE = "base"
Make = Callable[[nn.Module, Tensor], nn.Module]
"""From a base network of its own, and a batch that it takes, to what runs."""
Json = dict[str, Any]
Tell = Callable[[int], None]
"""Told how many slices have been timed since it was told last."""


@dataclass(frozen=True)
class Entry:
    """One contestant."""

    name: str
    make: Make


@dataclass(frozen=True)
class Measured:
    """Ratios to the base network. `time` is None where nothing is timed, `flops` where nothing could be counted."""

    time: Ratio | None
    memory: float
    flops: float | None

    def json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Heat:
    """`work` "state" is not timed: it is what stays in memory between training steps."""

    network: Network
    work: Work
    entries: tuple[Entry, ...]
    rows: int | None = None
    """In a batch, where it is not the batch of all."""

    @property
    def slices(self) -> int:
        """To be timed in one repeat."""
        return 0 if self.work == "state" else len(self.entries) + 1

    @property
    def title(self) -> str:
        return f"{self.network.title}, {TITLES[self.work]}"

    def run(self, batch: int, repeats: int, tell: Tell) -> dict[str, Measured]:
        x, y = self.network.batch(self.rows or batch)
        made = {BASE: self.network.make()} | {entry.name: entry.make(self.network.make(), x[:2]) for entry in self.entries}
        bytes_ = {name: memory(self.work, net, x, y) for name, net in made.items()}
        counts = {name: None if self.work == "state" else flops(self.work, net, x, y) for name, net in made.items()}
        times: dict[str, list[float]] = {name: [] for name in made}
        if self.work != "state":
            for repeat in race({name: timeable(self.work, net, x, y) for name, net in made.items()}, repeats):
                for name, seconds in repeat.items():
                    times[name].append(seconds)
                tell(len(repeat))
        return {
            name: Measured(
                time=ratio(times[name], times[BASE]) if times[name] else None,
                memory=bytes_[name] / bytes_[BASE],
                flops=over(counts[name], counts[BASE]),
            )
            for name in (entry.name for entry in self.entries)
        }


@dataclass(frozen=True)
class Job:
    """A heat, and the rows of the results that are made of it."""

    name: str
    heat: Heat
    rows: Callable[[dict[str, Measured]], list[Json]]


def converted(spec: Spec) -> Make:
    return lambda net, x: ensemble(net, spec, example=x)


def folded(spec: Spec) -> Make:
    """The plain network that it becomes, which is what would be deployed."""
    return lambda net, x: ensemble(net, spec, example=x).fold()
