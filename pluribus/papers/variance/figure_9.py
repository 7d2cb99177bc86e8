"""variance/figure-9: the densities of single neurons' responses, by class.

Scale cpu takes about a minute of one core beside table 1.
"""

from typing import TYPE_CHECKING

import torch

from ...file_formats.schema import NotNegative, Pair, Schema, Text, Values
from ...reports.svg import line_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from .configurations import DENSE_ABOUT, DENSE_DEPARTURE, configure_dropout_lenet, configure_zero_mean_lenet
from .preconditions import judge_under, require_base, require_bound, require_seeds
from .response_densities import average_by_class, measure_response
from .seeds import SEEDS, estimate, format_share, group_seeds
from .trained_cells import TrainedCell, build_cell, train_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS, NEURONS = 121, 4
FLOOR = 1e-2
"""The smallest density that is drawn."""


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"densities, seed {seed}": build_cell(configure_zero_mean_lenet(scale, seed), configure_dropout_lenet(scale, seed))
        for seed in SEEDS[scale]
    }


class ClassDensity(Schema):
    """The density of a neuron's response to the rows of a class: its mean over rows, and its standard deviation."""

    mean: Values
    std: Values


class NeuronDensities(Schema):
    """Where the densities were computed, and those of every class."""

    at: Values
    classes: dict[Text, ClassDensity]


class Levels(Schema):
    """The share of the variance of log σ that lies between classes, over neurons."""

    median: NotNegative
    quartiles: Pair


class Measured(TrainedCell):
    """Densities by neuron, how far classes explain σ, and the largest absolute mean of a response."""

    curves: dict[Text, NeuronDensities]
    levels: Levels
    largest_mean: NotNegative


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    found = measure_response(done.ensemble, done.x, "dense1")
    torch.manual_seed(options["seed"])
    chosen = torch.randperm(found.std.shape[1])[:NEURONS].tolist()
    curves = {}
    for neuron in chosen:
        reach = 3 * found.std[:, neuron].quantile(0.9).item()
        at = torch.linspace(-reach, reach, POINTS, dtype=torch.double)
        densities = average_by_class(found, done.y, at, neuron)
        curves[str(neuron)] = {
            "at": round_values(at),
            "classes": {
                str(label): {"mean": round_values(mean), "std": round_values(std)} for label, (mean, std) in densities.items()
            },
        }
    return trained | {
        "curves": curves,
        "levels": explain_spread_by_class(found.std, done.y),
        "largest_mean": found.mean.abs().max().item(),
    }


def round_values(values: torch.Tensor) -> list[float]:
    """Round to four digits, for JSON."""
    return [float(f"{value:.4g}") for value in values.tolist()]


def explain_spread_by_class(std: torch.Tensor, y: torch.Tensor) -> Json:
    """Return the share of the variance of log σ that lies between classes: median and quartiles over neurons."""
    logs = std.double().log()
    between = torch.stack([logs[y == label].mean(0) for label in y.unique()])
    weights = torch.stack([(y == label).double().mean() for label in y.unique()])
    spread = (weights[:, None] * (between - logs.mean(0)).square()).sum(0) / logs.var(0, unbiased=False).clamp_min(1e-30)
    return {"median": spread.median().item(), "quartiles": spread.quantile(torch.tensor([0.25, 0.75]).double()).tolist()}


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "what": f"share of a neuron's variance in log σ between classes, seed {seed}",
            "median": cell["levels"]["median"],
            "low": cell["levels"]["quartiles"][0],
            "high": cell["levels"]["quartiles"][1],
        }
        for cells in group_seeds(found).values()
        for seed, cell in cells.items()
    ]


def judge(found: Found) -> list[Verdict]:
    medians = [cell["levels"]["median"] for cell in found.values()]
    largest = max(cell["largest_mean"] for cell in found.values())
    verdicts = [
        judge_claim(
            "Each neuron has several energy levels, one for each class or group of classes.",
            "of half of the neurons of every seed, classes explain more than half of the variance of log σ over test rows; "
            "direction: a quarter",
            f"they explain {format_share(estimate(medians), 0)} in the median neuron",
            min(medians) > 0.5,
            min(medians) > 0.25,
        ),
        judge_claim(
            "The responses have mean zero whatever the object.",
            "the largest mean response of any neuron of any seed to any test row is exactly zero",
            f"{largest:g}",
            largest == 0,
        ),
    ]
    bounds = require_bound({"zero-mean": found.values()})
    return judge_under(verdicts, require_seeds(found), require_base(found, 0.994), bounds)


def draw(figure: "Figure", result: Json) -> None:
    curves = next(iter(result["cells"].values()))["found"]["curves"]
    figure.set_size_inches(9, 6)
    panels = figure.subplots(2, 2).flat
    for place, (axes, (neuron, curve)) in enumerate(zip(panels, curves.items(), strict=True)):
        for index, (label, density) in enumerate(curve["classes"].items()):
            own = line_style(index)
            mean, std = torch.tensor(density["mean"]), torch.tensor(density["std"])
            axes.plot(curve["at"], mean, label=f"class {label}" if place == 0 else None, **own)
            axes.fill_between(
                curve["at"], (mean - std).clamp_min(FLOOR), mean + std, color=own["color"], alpha=0.06, linewidth=0
            )
        axes.set_title(f"Neuron {neuron}", loc="left", fontsize=11)
        axes.set_xlabel("response before BatchNorm")
        axes.set_ylabel("density, logarithmic")
        axes.set_yscale("log")
        axes.set_ylim(bottom=FLOOR)
        style_axes(axes)
    figure.suptitle(
        "Densities of responses by class: mean and standard deviation over test rows", x=0.01, ha="left", fontsize=11
    )
    figure.legend(loc="outside lower center", ncols=5, frameon=False, fontsize=9)


RECIPE = Recipe(
    id="variance/figure-9",
    title="Activation densities by class",
    question="What does a variance neuron know of an object?",
    source="figure 9, appendix D",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale(
            f"The zero-mean network of table-1: {DENSE_ABOUT} The figure has four neurons of the first, drawn with its seed.",
            list_cells("cpu"),
            ("mnist",),
        ),
        "paper": Scale("The zero-mean LeNet-5 on MNIST, 200 epochs.", list_cells("paper"), ("mnist",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"what": "over all neurons", "median": "median", "low": "lower quartile", "high": "upper quartile"},
    draw=draw,
    departures=[DENSE_DEPARTURE],
)
