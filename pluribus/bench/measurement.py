"""A measurement: the base network and candidates that are built from it run the same workload on the same batch."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from ..analysis.cost import divide_counts
from ..analysis.timing import Ratio, summarize_ratios, time_interleaved
from ..core.convert import ensemble
from ..core.spec import Spec
from .networks import Network
from .workloads import TITLES, Workload, count_workload_flops, measure_workload_memory, prepare_workload

BASE = "base"
Build = Callable[[nn.Module, Tensor], nn.Module]
"""Takes a new base network and a batch that it accepts, and returns the module to measure."""
Json = dict[str, Any]
Progress = Callable[[int], None]
"""Receives how many timings have been taken since the last call."""


@dataclass(frozen=True)
class Candidate:
    """One of the modules that are compared with the base network."""

    name: str
    build: Build


@dataclass(frozen=True)
class CostRatios:
    """Ratios to the base network. `time` is None where nothing is timed, `flops` where they cannot be counted."""

    time: Ratio | None
    memory: float
    flops: float | None

    def to_json(self) -> Json:
        return asdict(self)


@dataclass(frozen=True)
class Measurement:
    """The workload "state" is not timed: it is the memory that stays allocated between training steps."""

    network: Network
    workload: Workload
    candidates: tuple[Candidate, ...]
    rows: int | None = None
    """Rows of the batch, where they differ from the setting of the benchmark."""

    @property
    def timings(self) -> int:
        """How many timings one repeat takes."""
        return 0 if self.workload == "state" else len(self.candidates) + 1

    @property
    def title(self) -> str:
        return f"{self.network.title}, {TITLES[self.workload]}"

    def run(self, batch: int, repeats: int, progress: Progress) -> dict[str, CostRatios]:
        """Build and measure everything, and return the ratios of each candidate by its name."""
        x, y = self.network.draw_batch(self.rows or batch)
        nets = {BASE: self.network.make()}
        nets |= {candidate.name: candidate.build(self.network.make(), x[:2]) for candidate in self.candidates}
        memory = {name: measure_workload_memory(self.workload, net, x, y) for name, net in nets.items()}
        flops: dict[str, int | None] = dict.fromkeys(nets)
        seconds: dict[str, list[float]] = {name: [] for name in nets}
        if self.workload != "state":
            flops = {name: count_workload_flops(self.workload, net, x, y) for name, net in nets.items()}
            runs = {name: prepare_workload(self.workload, net, x, y) for name, net in nets.items()}
            for repeat in time_interleaved(runs, repeats):
                for name, value in repeat.items():
                    seconds[name].append(value)
                progress(len(repeat))
        return {
            name: CostRatios(
                time=summarize_ratios(seconds[name], seconds[BASE]) if seconds[name] else None,
                memory=memory[name] / memory[BASE],
                flops=divide_counts(flops[name], flops[BASE]),
            )
            for name in nets
            if name != BASE
        }


@dataclass(frozen=True)
class Job:
    """A measurement, and how its ratios become rows of the results."""

    name: str
    measurement: Measurement
    make_rows: Callable[[dict[str, CostRatios]], list[Json]]


def convert_with(spec: Spec) -> Build:
    """Return a function that converts a network into the ensemble of this spec."""
    return lambda net, x: ensemble(net, spec, example=x)


def fold_with(spec: Spec) -> Build:
    """Return a function that converts a network and folds the ensemble, which is the form that would be deployed."""
    return lambda net, x: ensemble(net, spec, example=x).fold()
