"""variance/figure-5: how many of a variance layer's weights can be zero?

Scale cpu takes about 3 minutes of one core beside table 1: 45 × 21 draws of the dense layers for 10,000 rows.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from ...analysis.pruning import prune, sparsity, standard_deviations
from ...file_formats.schema import MOST_ENTRIES, NotNegative, Schema, Share, Size
from ...reports.svg import MUTED, marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, find_lossless_share, judge_claim
from .configurations import DENSE_ABOUT, DENSE_DEPARTURE, configure_dropout_lenet, configure_zero_mean_lenet
from .preconditions import judge_under, require_base, require_bound, require_seeds
from .seeds import SEEDS, estimate, format_share
from .trained_cells import TrainedCell, build_cell, train_cell
from .trainings import measure_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.998)


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"pruning, seed {seed}": build_cell(
            configure_zero_mean_lenet(scale, seed), configure_dropout_lenet(scale, seed), shares=list(SHARES)
        )
        for seed in SEEDS[scale]
    }


class PrunedRow(Schema):
    """The largest σ that was zeroed, the share of zeros, and the accuracies that are left, of twenty draws and of one."""

    threshold: NotNegative
    sparsity: Share
    many: Share
    one: Share


class Measured(TrainedCell):
    """A row for each share of pruned weights; the number of weights, and of test rows."""

    table: Annotated[list[PrunedRow], Field(min_length=1, max_length=MOST_ENTRIES)]
    weights: Size
    rows: Size


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    sigmas = standard_deviations(done.ensemble)
    ordered = sigmas["dense1"].flatten().sort().values
    table = []
    for share in options["shares"]:
        workspace.report(f"{share:.1%} pruned")
        pruned = prune(done.ensemble, sigmas, share=share)
        threshold = ordered[min(int(share * len(ordered)), len(ordered) - 1)].item() if share else 0.0
        row = {"threshold": threshold, "sparsity": sparsity(pruned).get("dense1", 0.0)}
        table.append(
            row | {"many": measure_accuracy(pruned, done.x, done.y, 20), "one": measure_accuracy(pruned, done.x, done.y, 1)}
        )
    return trained | {"table": table, "weights": len(ordered), "rows": len(done.y)}


def tabulate(found: Found) -> list[Json]:
    """The rows of every share that was asked for, means over seeds; the sparsity is the exact share of zeros."""
    tables = [cell["table"] for cell in found.values()]
    return [
        {key: factor * float(np.mean([row[key] for row in rows])) for key, factor in FACTORS.items()}
        for rows in zip(*tables, strict=True)
    ]


FACTORS = {"sparsity": 100.0, "threshold": 1.0, "many": 100.0, "one": 100.0}


def find_prunable_share(cell: Json) -> float:
    """Return the largest share of weights that can be zero at no loss."""
    return find_lossless_share([(row["sparsity"], row["many"]) for row in cell["table"]], cell["rows"])


def judge(found: Found) -> list[Verdict]:
    shares = [find_prunable_share(cell) for cell in found.values()]
    pruned = judge_claim(
        "Up to 98 % of the layer's weights can be zero with no accuracy lost.",
        "of every seed 97 % or more, at every smaller share too, within the interval of the full network's accuracy; "
        "direction: "
        "50 % or more",
        f"{format_share(estimate(shares), 1)} of {next(iter(found.values()))['weights']:,} weights",
        min(shares) >= 0.97,
        min(shares) >= 0.5,
    )
    bounds = require_bound({"zero-mean": found.values()})
    return judge_under([pruned], require_seeds(found), require_base(found, 0.994), bounds)


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(7, 3.6)
    axes = figure.add_subplot()
    tables = [cell["found"]["table"] for cell in result["cells"].values()]
    for index, (key, label) in enumerate((("many", "20 draws"), ("one", "one draw"))):
        for place, table in enumerate(tables):
            left = [100 - 100 * row["sparsity"] for row in table]
            axes.plot(left, [100 * row[key] for row in table], label=None if place else label, **marker_style(index))
    axes.axvline(2, color=MUTED, linestyle=":", linewidth=1, label="the paper's 2 %")
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set_xticks([100, 50, 20, 10, 5, 2, 1, 0.5, 0.2], ["100", "50", "20", "10", "5", "2", "1", "0.5", "0.2"])
    axes.minorticks_off()
    axes.set_title("Zeroing the weights with the smallest σ", loc="left", fontsize=11)
    axes.set_xlabel("weights of the layer that are left, %")
    axes.set_ylabel("test accuracy, %")
    style_axes(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


RECIPE = Recipe(
    id="variance/figure-5",
    title="Pruning by σ",
    question="How many weights of a variance layer matter?",
    source="figure 5, section 6.1",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale(f"The zero-mean network of table-1: {DENSE_ABOUT}", list_cells("cpu"), ("mnist",)),
        "paper": Scale("The zero-mean LeNet-5 on MNIST, 200 epochs.", list_cells("paper"), ("mnist",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"sparsity": "zero, %", "threshold": "σ below", "many": "20 draws, %", "one": "one draw, %"},
    draw=draw,
    departures=[DENSE_DEPARTURE],
)
