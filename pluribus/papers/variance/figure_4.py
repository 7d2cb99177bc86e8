"""variance/figure-4: how accurate are single weight samples, each used for the whole test set, and averages of 200 of them?

Scale cpu takes about 10 minutes of one core beside table 1: 15 × 200 draws of the dense layers for 10,000 rows.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field

from ...core.seeds import derive_seed, set_seed
from ...file_formats.schema import MOST_ENTRIES, Share
from ...reports.svg import marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import DENSE_ABOUT, DENSE_DEPARTURE, configure_dropout_lenet, configure_zero_mean_lenet
from .preconditions import judge_under, require_base, require_bound, require_seeds
from .seeds import SEEDS, estimate, format_points, group_seeds
from .trained_cells import TrainedCell, build_cell, train_cell
from .trainings import Trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT_ONCE = 25
"""Weight samples that are in memory at the same time."""


def list_cells(scale: str, draws: int, averages: int) -> dict[str, Json]:
    return {
        f"average {i}, seed {seed}": build_cell(
            configure_zero_mean_lenet(scale, seed), configure_dropout_lenet(scale, seed), draws=draws, draw_seed=i
        )
        for seed in SEEDS[scale]
        for i in range(averages)
    }


class Measured(TrainedCell):
    """The accuracy of every single draw, and that of their average."""

    singles: Annotated[list[Share], Field(min_length=1, max_length=MOST_ENTRIES)]
    average: Share


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    singles, probs = list[float](), torch.zeros(1)
    for start in range(0, options["draws"], AT_ONCE):
        workspace.report(f"draw {start} of {options['draws']}")
        probs = probs + sum_probabilities(
            done, min(AT_ONCE, options["draws"] - start), derive_seed(options["draw_seed"], start), singles
        )
    return trained | {"singles": singles, "average": (probs.argmax(1) == done.y).double().mean().item()}


def sum_probabilities(done: Trained, count: int, seed: int, singles: list[float]) -> torch.Tensor:
    """Return the summed probabilities `[B, C]` of `count` weight samples, and append the accuracy of each to `singles`."""
    done.ensemble.executor.prepare(done.ensemble, done.x[:2])
    set_seed(seed)
    members = done.ensemble.freeze(count).predict(done.x).members  # [M, B, C]
    singles += (members.argmax(2) == done.y).double().mean(1).tolist()
    return members.double().sum(0)


def tabulate(found: Found) -> list[Json]:
    singles = [100 * value for cell in found.values() for value in cell["singles"]]
    averages = [100 * cell["average"] for cell in found.values()]
    return [
        {"what": what, "count": len(values), "mean": float(np.mean(values)), "low": min(values), "high": max(values)}
        for what, values in (("single weight samples", singles), ("averages", averages))
        if values
    ]


def judge(found: Found) -> list[Verdict]:
    networks = group_networks(found)
    singles = [value for cells in networks.values() for cell in cells for value in cell["singles"]]
    averages = [cell["average"] for cells in networks.values() for cell in cells]
    gains = [
        min(cell["average"] for cell in cells) - max(value for cell in cells for value in cell["singles"])
        for cells in networks.values()
    ]
    against_mean = [
        min(cell["average"] for cell in cells) - float(np.mean([value for cell in cells for value in cell["singles"]]))
        for cells in networks.values()
    ]
    verdicts = [
        judge_claim(
            "Every weight sample is relatively accurate (98 to 99 % in the figure).",
            "the worst of all networks at least 97 %; direction: at least 90 %",
            f"{format_percent(min(singles))} to {format_percent(max(singles))} of {len(singles)} samples of {len(networks)} "
            f"network{'s' * (len(networks) > 1)}",
            min(singles) >= 0.97,
            min(singles) >= 0.90,
        ),
        judge_claim(
            "Averaging 200 of them is significantly better.",
            "of every network the worst average is better than the best sample; direction: better than the mean sample",
            f"{format_percent(min(averages))} to {format_percent(max(averages))} of {len(averages)} averages; above the "
            "best sample "
            f"by {format_points(estimate(gains))}",
            min(gains) > 0,
            min(against_mean) > 0,
        ),
    ]
    bounds = require_bound({"zero-mean": found.values()})
    seeds = require_seeds({f"zero-mean, seed {seed}": cells[0] for seed, cells in networks.items()})
    return judge_under(verdicts, seeds, require_base(found, 0.994), bounds)


def group_networks(found: Found) -> dict[int, list[Json]]:
    """Return the cells of every network, by its seed; what was recorded before has one network, with seed 0."""
    networks: dict[int, list[Json]] = {}
    for cells in group_seeds(found).values():
        for seed, cell in cells.items():
            networks.setdefault(seed, []).append(cell)
    return networks


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(7, 3.6)
    axes = figure.add_subplot()
    found = [cell["found"] for cell in result["cells"].values()]
    singles = [100 * value for cell in found for value in cell["singles"]]
    averages = [100 * cell["average"] for cell in found]
    bins = np.linspace(min(singles + averages), max(singles + averages) + 1e-9, 41).tolist()
    for index, (label, values) in enumerate(
        (("single weight samples", singles), ("averages of their probabilities", averages))
    ):
        weights = np.full(len(values), 100 / len(values))
        axes.hist(
            values, bins=bins, weights=weights, color=marker_style(index)["color"], alpha=0.85, label=f"{label} ({len(values)})"
        )
    axes.set_title("Accuracy of weight samples and of their averages", loc="left", fontsize=11)
    axes.set_xlabel("test accuracy, %")
    axes.set_ylabel("share of samples or averages, %")
    style_axes(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


RECIPE = Recipe(
    id="variance/figure-4",
    title="Accuracy of weight samples",
    question="Is every sample of the weights a good network, and is their average better?",
    source="figure 4, section 6.1",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs, 2 averages of 10 samples.", list_cells("smoke", 10, 2)),
        "cpu": Scale(
            f"The zero-mean network of table-1: {DENSE_ABOUT} Of each, 5 averages of 200 weight samples, each sample "
            "shared by all "
            "10,000 test rows.",
            list_cells("cpu", 200, 5),
            ("mnist",),
        ),
        "paper": Scale(
            "The zero-mean LeNet-5, 200 epochs; 50 averages of 200 weight samples.", list_cells("paper", 200, 50), ("mnist",)
        ),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"what": "", "count": "how many", "mean": "mean, %", "low": "worst, %", "high": "best, %"},
    draw=draw,
    departures=[DENSE_DEPARTURE],
)
