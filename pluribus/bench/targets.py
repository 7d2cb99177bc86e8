"""The targets: ratios to the base network that must not be exceeded. They are claims about single methods, so they name them.

The networks that a target needs beside a converted one (dropout in every block, naive implementations) are built here, too.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..methods import MIMO, BatchEnsemble, DeepEnsemble, Inner, MCDropout, Mixture, Variance
from .measurement import Build, Candidate, CostRatios, Job, Json, Measurement, convert_with, fold_with
from .networks import NETWORKS
from .workloads import Workload


@dataclass(frozen=True)
class Target:
    """A ratio to the base network, of time (of memory for the workload "state"), that must be at most `most`.

    A target without `most` and `method` is a naive implementation that is shown beside the others of its group.
    """

    name: str
    build: Build
    most: float | None = None
    method: str = ""


@dataclass(frozen=True)
class TargetGroup:
    """Targets that are measured together."""

    network: str
    workload: Workload
    targets: tuple[Target, ...]
    rows: int | None = None


# --- networks -----------------------------------------------------------------------------------------------------------


def add_dropout_to_blocks(net: nn.Module, x: Tensor) -> nn.Module:
    """Put dropout between the two convolutions of every block of ResNet-20, and convert it for MC dropout."""
    for name, layer in list(net.named_modules()):
        if name.endswith("conv2"):
            net.set_submodule(name, nn.Sequential(nn.Dropout(0.1), layer))
    return convert_with(MCDropout(samples=20))(net, x)


def add_late_dropout(net: nn.Module, x: Tensor) -> nn.Module:
    """Put dropout after the activation of the first dense layer of LeNet-5, and convert it for MC dropout."""
    assert isinstance(net, nn.Sequential)
    assert isinstance(net[8], nn.ReLU)
    net[8] = nn.Sequential(net[8], nn.Dropout(0.5))
    return convert_with(MCDropout(samples=20))(net, x)


class LayerAverage(nn.Module):
    """An inner ensemble as the paper's code has it: all layers are run, then averaged."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([layer(x) for layer in self.layers]).mean(0)


def average_four_layers(net: nn.Module, x: Tensor) -> nn.Module:
    """Replace each convolution of ResNet-20 by the average of four."""
    others = [NETWORKS["resnet20"].make() for _ in range(3)]
    for name, layer in list(net.named_modules()):
        if isinstance(layer, nn.Conv2d):
            net.set_submodule(name, LayerAverage([layer, *(other.get_submodule(name) for other in others)]))
    return net


class RepeatedPasses(nn.Module):
    """The same network several times, which is what a prediction takes without late branching."""

    def __init__(self, net: nn.Module, times: int) -> None:
        super().__init__()
        self.net, self.times = net, times

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.net(x) for _ in range(self.times)])


# --- targets ------------------------------------------------------------------------------------------------------------

TARGET_GROUPS = (
    TargetGroup(
        "resnet20",
        "training step",
        (
            Target("Inner, m = 4", convert_with(Inner(copies=4)), 1.05, "inner"),
            Target("Inner, m = 16", convert_with(Inner(copies=16)), 1.05, "inner"),
            Target("naive average of 4 layers", average_four_layers),
        ),
    ),
    TargetGroup(
        "resnet20",
        "state",
        (Target("Inner, m = 16, lean", convert_with(Inner(copies=16, lean=True)), 1.05, "inner"),),
    ),
    TargetGroup(
        "resnet20",
        "forward",
        (
            Target("Inner, m = 4, folded", fold_with(Inner(copies=4)), 1.02, "inner"),
            Target("MIMO, M = 3, folded", fold_with(MIMO(members=3)), 1.02, "mimo"),
        ),
    ),
    TargetGroup(
        "resnet20",
        "forward",
        (Target("BatchEnsemble, M = 4", convert_with(BatchEnsemble(members=4)), 4.3, "batch-ensemble"),),
    ),
    TargetGroup(
        "resnet20",
        "forward",
        (Target("MC dropout in every block, K = 20", add_dropout_to_blocks, 23.0, "mc-dropout"),),
    ),
    TargetGroup(
        "lenet5",
        "forward",
        (
            Target("Variance, first dense layer, K = 20", convert_with(Variance(samples=20, include="7")), 2.0, "variance"),
            Target("MC dropout after it, K = 20", add_late_dropout, 1.5, "mc-dropout"),
            Target("naive: 20 passes", lambda net, _: RepeatedPasses(net, 20)),
        ),
    ),
    TargetGroup("wrn-16-2", "forward", (Target("Mixture, M = 4", convert_with(Mixture(members=4)), 4.2, "mixture"),)),
    TargetGroup("wrn-16-2", "training step", (Target("Mixture, M = 4", convert_with(Mixture(members=4)), 4.2, "mixture"),)),
    TargetGroup(
        "mlp",
        "training step",
        (Target("deep ensemble, M = 16, batch of 32", convert_with(DeepEnsemble(members=16)), 3.0, "deep-ensemble"),),
        rows=32,
    ),
)


def list_target_keys() -> list[tuple[str, Workload, str]]:
    """List (network, workload, name) of all targets, in their order."""
    return [(group.network, group.workload, target.name) for group in TARGET_GROUPS for target in group.targets]


def plan_targets(networks: Collection[str], methods: Collection[str]) -> list[Job]:
    """Plan one measurement for each group with a target on these networks for one of these methods."""
    jobs = []
    for group in TARGET_GROUPS:
        selected = tuple(target for target in group.targets if not target.method or target.method in methods)
        if group.network in networks and any(target.method for target in selected):
            jobs.append(_plan_group(group, selected))
    return jobs


def _plan_group(group: TargetGroup, targets: tuple[Target, ...]) -> Job:
    candidates = tuple(Candidate(target.name, target.build) for target in targets)
    measurement = Measurement(NETWORKS[group.network], group.workload, candidates, group.rows)

    def make_rows(ratios: dict[str, CostRatios]) -> list[Json]:
        return [judge_target(group, target, ratios[target.name]) for target in targets]

    return Job(", ".join(target.name for target in targets), measurement, make_rows)


Verdict = Literal["met", "within noise", "missed", ""]


def get_verdict(row: Json) -> Verdict:
    """Return whether a target is met, by its median; where it is not, whether the repeats are enough to call it missed.

    It is missed if the limit lies below the middle half of the repeats. With 15 repeats, the middle half is about the 95 %
    interval of the median: a limit within it is not decided, and more repeats or a quieter machine are needed.
    """
    if row["met"] is None:
        return ""
    if row["met"]:
        return "met"
    return "missed" if row["time"] is None or row["time"]["low"] > row["most"] else "within noise"


def judge_target(group: TargetGroup, target: Target, ratios: CostRatios) -> Json:
    """Make the row of a target: its ratio, its limit, and whether the median (for "state", the memory) meets it."""
    value = ratios.memory if ratios.time is None else ratios.time.median
    met = None if target.most is None else value <= target.most
    key = {"network": group.network, "work": group.workload, "name": target.name}
    return key | {"value": value, "most": target.most, "met": met} | ratios.to_json()
