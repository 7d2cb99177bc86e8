"""What training costs: parameters, and the time of a step as a ratio to the base network, measured in turns with it."""

from collections.abc import Callable

import torch
from torch import nn

from ...analysis.timing import summarize_ratios, time_interleaved
from ...bench.targets import LayerAverage
from ...bench.workloads import TrainingStep
from ...core.convert import ensemble as convert
from ...core.describe import count_parameters
from ...core.spec import Spec
from ...file_formats.schema import NotNegative, Positive, Schema, Size
from ...methods.inner import Inner
from ...methods.maxout import Maxout
from ...models.registry import build
from ..recipe import Json, Workspace
from .networks import COPIES

BASE, NAIVE, FUSED, DENSE = "base", "IEN, m layers one by one", "IEN", "IEN+FC"
LEAN, MAXOUT = "IEN, lean", "maxout"
SPARE = "IEN with a spare layer, as the authors count it"
SPECS: dict[str, Spec] = {
    FUSED: Inner(copies=COPIES),
    DENSE: Inner(copies=COPIES, include="*"),
    LEAN: Inner(copies=COPIES, lean=True),
    MAXOUT: Maxout(copies=COPIES),
}
ROWS = (BASE, NAIVE, *SPECS)


class RatioFile(Schema):
    """The median of a ratio over repeats, and its quartiles."""

    median: Positive
    low: Positive
    high: Positive


class Measured(Schema):
    """Parameters by row; where steps are timed, their ratios to the base network, and the seconds that its step takes."""

    parameters: dict[str, Size]
    ratios: dict[str, RatioFile]
    seconds: NotNegative | None


def measure(options: Json, workspace: Workspace) -> Json:
    """Count the parameters of a network in every row, and time its steps if it has `repeats`."""
    torch.manual_seed(options["seed"])

    def make() -> nn.Module:
        model: Json = dict(options["model"])
        return build(model.pop("name"), tuple(options["shape"]), options["classes"], **model)

    found: Json = {"parameters": count_rows(make), "ratios": {}, "seconds": None}
    if options["repeats"]:
        found |= time_rows(make, options, workspace)
    return found


def count_rows(make: Callable[[], nn.Module]) -> dict[str, int]:
    """Count the parameters of every row. The networks have no weights: they are counted, and not run."""
    with torch.device("meta"):
        base = make()
        counts = {BASE: count_parameters(base)} | {
            name: count_parameters(convert(base, spec)) for name, spec in SPECS.items() if name != LEAN
        }
    counts[LEAN] = count_parameters(convert(make(), SPECS[LEAN]))  # it draws a seed, which needs a device
    layer = (counts[FUSED] - counts[BASE]) // (COPIES - 1)
    return counts | {NAIVE: counts[FUSED], SPARE: counts[FUSED] + layer}


def time_rows(make: Callable[[], nn.Module], options: Json, workspace: Workspace) -> Json:
    """Time a training step of every row, each once a repeat, in an order that changes."""
    x = torch.randn(options["batch_size"], *options["shape"]).contiguous(memory_format=torch.channels_last)
    y = torch.arange(len(x)) % options["classes"]
    nets = {BASE: make(), NAIVE: average_layers(make)} | {
        name: convert(make(), spec, example=x[:2]) for name, spec in SPECS.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in nets}
    runs = {name: TrainingStep(net, x, y) for name, net in nets.items()}
    for number, repeat in enumerate(time_interleaved(runs, options["repeats"])):
        workspace.report(f"repeat {number + 1}/{options['repeats']}")
        for name, value in repeat.items():
            seconds[name].append(value)
    ratios = {name: summarize_ratios(own, seconds[BASE]) for name, own in seconds.items()}
    return {
        "ratios": {name: {"median": each.median, "low": each.low, "high": each.high} for name, each in ratios.items()},
        "seconds": sorted(seconds[BASE])[len(seconds[BASE]) // 2],
    }


def average_layers(make: Callable[[], nn.Module]) -> nn.Module:
    """The network as the paper's code has it: m convolutions in place of each, all of them run, then averaged."""
    net, *others = (make() for _ in range(COPIES))
    for name, layer in list(net.named_modules()):
        if isinstance(layer, nn.Conv2d):
            net.set_submodule(name, LayerAverage([layer, *(other.get_submodule(name) for other in others)]))
    return net
