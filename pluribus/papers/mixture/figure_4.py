"""mixture/figure-4: networks between two members in weight space."""

from typing import TYPE_CHECKING

import numpy as np

from ...analysis.weight_plane import map_weight_line
from ...file_formats.schema import Schema, Values
from ...reports.svg import marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, format_percent, judge_claim
from .claims import collect, list_rows
from .rows import NAIVE, SEEDS, configure_budget, configure_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGETS = (0.4, 1.0, 3.3)
POINTS = {"smoke": 3, "cpu": 11, "paper": 11}
ROWS_FOR_NORM, BATCH = 2000, 64
"""Training rows that statistics are estimated on, and test rows whose own statistics stand for those of training."""
DIP = 0.05


class Measured(Schema):
    """Accuracy along the line between two members: BatchNorm with the statistics of the rows that are evaluated, as in the
    paper, and with statistics estimated anew on training rows."""

    shares: Values
    training_mode: Values
    estimated: Values


def list_cells(scale: str) -> dict[str, Json]:
    settings = {f"mixture, {budget:g}×": configure_budget(scale, budget) for budget in BUDGETS}
    settings[NAIVE] = configure_row(scale, NAIVE)
    return {
        f"{name}, seed {seed}": {"seed": seed, "training": training, "points": POINTS[scale]}
        for name, training in settings.items()
        for seed in range(SEEDS[scale])
    }


def measure(options: Json, workspace: Workspace) -> Json:
    trained = train_once(options["training"] | {"seed": options["seed"]}, workspace)
    rows = trained.take_training_rows(ROWS_FOR_NORM)
    found: Json = {}
    ways: Json = {"training_mode": {"batchnorm_batch": BATCH}, "estimated": {"batchnorm_rows": rows}}
    for name, way in ways.items():
        workspace.report(name.replace("_", " "))
        line = map_weight_line(trained.ensemble, trained.x, trained.y, points=options["points"], **way)
        found |= {"shares": line.shares.tolist(), name: line.accuracy.tolist()}
    return found


def list_ends(cell: Json, key: str = "training_mode") -> list[float]:
    """The accuracies of the two members."""
    return [cell[key][0], cell[key][-1]]


def find_dip(cell: Json, key: str = "training_mode") -> float:
    """How far the lowest accuracy on the line lies below the mean of both ends.

    >>> round(find_dip({"training_mode": [0.9, 0.5, 0.8]}), 3)
    0.35
    """
    return sum(list_ends(cell, key)) / 2 - min(cell[key])


def average_dip(found: Found, row: str, key: str = "training_mode") -> float:
    return float(np.mean([find_dip(cell, key) for cell in collect(found, row)]))


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "members": row,
            "ends": 100 * float(np.mean([[cell["training_mode"][i] for i in (0, -1)] for cell in collect(found, row)])),
        }
        | {"dip": 100 * average_dip(found, row), "estimated": 100 * average_dip(found, row, "estimated")}
        for row in list_rows(found)
    ]


def judge(found: Found) -> list[Verdict]:
    dips = {row: average_dip(found, row) for row in list_rows(found)}
    small, large = (dips[f"mixture, {budget:g}×"] for budget in (BUDGETS[0], BUDGETS[-1]))
    evidence = ", ".join(f"{row} {format_percent(each, 1)}" for row, each in dips.items())
    return [
        judge_claim(
            "Between members accuracy dips: they are in different minima.",
            "with every budget, the lowest accuracy on the line is at least 5 points below that of the ends; direction: below",
            evidence,
            all(each >= DIP for each in dips.values()),
            all(each > 0 for each in dips.values()),
        ),
        judge_claim(
            "With few parameters the dip is significantly smaller.",
            "at 0.4× at most half of that at 3.3×; direction: smaller",
            evidence,
            small <= large / 2,
            small < large,
        ),
    ]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(9, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    for axes, key, title in (
        (panels[0], "training_mode", "accuracy, BatchNorm in training mode, %"),
        (panels[1], "estimated", "BatchNorm estimated anew"),
    ):
        for index, row in enumerate(list_rows(found)):
            cells = collect(found, row)
            values = 100 * np.mean([cell[key] for cell in cells], axis=0)
            axes.plot(cells[0]["shares"], values, label=row if axes is panels[0] else None, **marker_style(index))
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("from member 0 to member 1")
        style_axes(axes)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)


RECIPE = Recipe(
    id="mixture/figure-4",
    title="Between two members",
    question="Do members that share templates lie in different minima?",
    source="figure 4, section 5.3",
    scales={
        "smoke": Scale("100 digits, a quarter of ResNet-8, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            "The fast residual network with 32 filters on CIFAR-10, the recipe fast-sgd, 8 epochs; three seeds.",
            list_cells("cpu"),
            ("cifar10",),
            {"CIFAR-100": "the set is not among those that can be had; CIFAR-10 stands for it"},
        ),
        "paper": Scale("WRN-28-10 on CIFAR-100, 200 epochs.", list_cells("paper"), ("cifar100",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "members": "members of",
        "ends": "at the ends, %",
        "dip": "dip, points",
        "estimated": "dip, BatchNorm estimated anew, points",
    },
    draw=draw,
)
