"""What is measured: every method on every network, and the works that have a target."""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core.spec import Spec
from ..methods import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    Maxout,
    MCDropout,
    Mixture,
    Multihead,
    Single,
    TreeNet,
    Variance,
    VariationalDropout,
)
from .heat import Entry, Heat, Job, Json, Make, Measured, converted, folded
from .networks import NETWORKS
from .work import Work

METHODS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        *(Single(), BatchEnsemble(members=4), Inner(copies=4), Maxout(copies=4), MCDropout(samples=20), MIMO(members=3)),
        *(Mixture(members=4), Multihead(members=4), TreeNet(members=4), Variance(samples=20), VariationalDropout(samples=20)),
        DeepEnsemble(members=4),
    )
}
"""In the order of the tables. M = 4, but MIMO's 3; K = 20."""
TABLED: tuple[Work, ...] = ("training step", "forward")


# --- the table ----------------------------------------------------------------------------------------------------------


def table(networks: Collection[str], methods: Collection[str]) -> list[Job]:
    """A heat for each method, so that the base runs close to it."""
    return [
        _cell(network, method, work)
        for network in NETWORKS
        for method in METHODS
        for work in TABLED
        if network in networks and method in methods
    ]


def _cell(network: str, method: str, work: Work) -> Job:
    heat = Heat(NETWORKS[network], work, (Entry(method, converted(METHODS[method])),))
    about = {"network": network, "method": method, "work": work}
    return Job(method, heat, lambda found: [about | found[method].json()])


# --- the targets --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A ratio to the base network, of time (or of memory, for the work "state"), that must not be more than `most`.

    Without `most` and `method` it is shown beside the others of its trial.
    """

    name: str
    make: Make
    most: float | None = None
    method: str = ""


@dataclass(frozen=True)
class Trial:
    """Targets that are measured in one heat."""

    network: str
    work: Work
    targets: tuple[Target, ...]
    rows: int | None = None


def dropping(net: nn.Module, x: Tensor) -> nn.Module:
    """ResNet-20 with dropout between the two convolutions of every block."""
    for name, layer in list(net.named_modules()):
        if name.endswith("conv2"):
            net.set_submodule(name, nn.Sequential(nn.Dropout(0.1), layer))
    return converted(METHODS["mc-dropout"])(net, x)


def dropping_late(net: nn.Module, x: Tensor) -> nn.Module:
    """LeNet-5 with dropout after the activation of its first dense layer."""
    assert isinstance(net, nn.Sequential)
    assert isinstance(net[8], nn.ReLU)
    net[8] = nn.Sequential(net[8], nn.Dropout(0.5))
    return converted(METHODS["mc-dropout"])(net, x)


class Average(nn.Module):
    """An inner ensemble as the paper's code has it: m layers are run, then averaged."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([layer(x) for layer in self.layers]).mean(0)


def averaging(net: nn.Module, x: Tensor) -> nn.Module:
    """Four layers in the place of each convolution."""
    twins = [NETWORKS["resnet20"].make() for _ in range(3)]
    for name, layer in list(net.named_modules()):
        if isinstance(layer, nn.Conv2d):
            net.set_submodule(name, Average([layer, *(twin.get_submodule(name) for twin in twins)]))
    return net


class Again(nn.Module):
    """The same network so many times, as who has no late branching must run it."""

    def __init__(self, net: nn.Module, times: int) -> None:
        super().__init__()
        self.net, self.times = net, times

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.net(x) for _ in range(self.times)])


TRIALS = (
    Trial(
        "resnet20",
        "training step",
        (
            Target("Inner, m = 4", converted(Inner(copies=4)), 1.05, "inner"),
            Target("Inner, m = 16", converted(Inner(copies=16)), 1.05, "inner"),
            Target("naive average of 4 layers", averaging),
        ),
    ),
    Trial("resnet20", "state", (Target("Inner, m = 16, lean", converted(Inner(copies=16, lean=True)), 1.05, "inner"),)),
    Trial(
        "resnet20",
        "forward",
        (
            Target("Inner, m = 4, folded", folded(Inner(copies=4)), 1.02, "inner"),
            Target("MIMO, M = 3, folded", folded(MIMO(members=3)), 1.02, "mimo"),
        ),
    ),
    Trial("resnet20", "forward", (Target("BatchEnsemble, M = 4", converted(BatchEnsemble(members=4)), 4.3, "batch-ensemble"),)),
    Trial("resnet20", "forward", (Target("MC dropout in every block, K = 20", dropping, 23.0, "mc-dropout"),)),
    Trial(
        "lenet5",
        "forward",
        (
            Target("Variance, first dense layer, K = 20", converted(Variance(samples=20, include="7")), 2.0, "variance"),
            Target("MC dropout after it, K = 20", dropping_late, 1.5, "mc-dropout"),
            Target("naive: 20 passes", lambda net, _: Again(net, 20)),
        ),
    ),
    Trial("wrn-16-2", "forward", (Target("Mixture, M = 4", converted(Mixture(members=4)), 4.2, "mixture"),)),
    Trial("wrn-16-2", "training step", (Target("Mixture, M = 4", converted(Mixture(members=4)), 4.2, "mixture"),)),
    Trial(
        "mlp",
        "training step",
        (Target("deep ensemble, M = 16, batch of 32", converted(DeepEnsemble(members=16)), 3.0, "deep-ensemble"),),
        rows=32,
    ),
)


def targets(networks: Collection[str], methods: Collection[str]) -> list[Job]:
    jobs = []
    for trial in TRIALS:
        chosen = tuple(target for target in trial.targets if not target.method or target.method in methods)
        if trial.network in networks and any(target.method for target in chosen):
            jobs.append(_trial(trial, chosen))
    return jobs


def _trial(trial: Trial, chosen: tuple[Target, ...]) -> Job:
    heat = Heat(NETWORKS[trial.network], trial.work, tuple(Entry(each.name, each.make) for each in chosen), trial.rows)

    def rows(found: dict[str, Measured]) -> list[Json]:
        return [_verdict(trial, target, found[target.name]) for target in chosen]

    return Job(", ".join(target.name for target in chosen), heat, rows)


def _verdict(trial: Trial, target: Target, found: Measured) -> Json:
    value = found.memory if found.time is None else found.time.median
    met = None if target.most is None else value <= target.most
    about = {"network": trial.network, "work": trial.work, "name": target.name}
    return about | {"value": value, "most": target.most, "met": met} | found.json()
