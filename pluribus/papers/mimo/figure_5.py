"""mimo/figure-5: subnetworks and their ensemble as M grows."""

from typing import TYPE_CHECKING

import numpy as np

from ...reports.svg import marker_style, style_axes
from ..classification_scores import Scores, compare_cells, measure_scores
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import SEEDS, configure, describe_mimo, require_regime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = (1, 2, 3, 4, 5, 6)


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"M = {count}, seed {seed}": {"seed": seed, "training": configure(scale, describe_mimo(count), seed)}
        for count in MEMBERS
        for seed in range(SEEDS[scale])
    }


def measure(options: Json, workspace: Workspace) -> Json:
    return measure_scores(train_once(options["training"], workspace))


def collect(found: Found, count: int) -> list[Json]:
    """The cells with so many members, by seed."""
    return [cell for name, cell in found.items() if name.startswith(f"M = {count},")]


def average(found: Found, count: int, key: str) -> float:
    return float(np.mean([cell[key] for cell in collect(found, count)]))


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "members": f"M = {count}",
            "accuracy": 100 * average(found, count, "accuracy"),
            "member_accuracy": 100 * average(found, count, "member_accuracy"),
            "nll": average(found, count, "nll"),
            "member_nll": average(found, count, "member_nll"),
            "calibrated": average(found, count, "calibrated_nll"),
        }
        for count in MEMBERS
        if collect(found, count)
    ]


def judge(found: Found) -> list[Verdict]:
    accuracy = {count: average(found, count, "accuracy") for count in MEMBERS}
    nll = {count: average(found, count, "nll") for count in MEMBERS}
    alone = {count: average(found, count, "member_accuracy") for count in MEMBERS}
    best, right = min(MEMBERS, key=nll.__getitem__), max(MEMBERS, key=accuracy.__getitem__)
    gains = {count: compare_cells(collect(found, count), collect(found, 1)) for count in MEMBERS[1:]}
    steps = [alone[count] - alone[count - 1] for count in MEMBERS[1:]]
    regime = require_regime(accuracy[1])
    verdicts = [
        judge_claim(
            "Subnetworks get slowly worse as M grows.",
            "the accuracy of a subnetwork falls from each M to the next, by at most 2 points; direction: it is lower at M = 6 "
            "than at M = 1",
            ", ".join(f"M = {count} {format_percent(alone[count], 1)}" for count in MEMBERS),
            all(-0.02 <= step < 0 for step in steps),
            alone[6] < alone[1],
        ),
        judge_claim(
            "The ensemble is best with two to four subnetworks.",
            "the lowest NLL is at M = 2, 3 or 4, and below that of M = 1 beyond the interval; direction: for one of these, the "
            "NLL is below that of M = 1",
            "NLL against M = 1: " + ", ".join(f"M = {count} {gain}" for count, gain in gains.items()),
            best in (2, 3, 4) and gains[best].high < 0,
            min(nll[count] for count in (2, 3, 4)) < nll[1],
        ),
        judge_claim(
            "Accuracy peaks at a smaller M than log-likelihood.",
            "the M of the highest accuracy is smaller than that of the lowest NLL; direction: it is not larger",
            f"accuracy at M = {right}, NLL at M = {best}",
            right < best,
            right <= best,
        ),
    ]
    return [regime.excuse(verdict) for verdict in verdicts]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(8, 3.6)
    panels = figure.subplots(1, 2)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    counts = [count for count in MEMBERS if collect(found, count)]
    for axes, key, factor, title in (
        (panels[0], "accuracy", 100.0, "accuracy, %"),
        (panels[1], "nll", -1.0, "log-likelihood, nats"),
    ):
        for index, (kind, label) in enumerate((("", "ensemble"), ("member_", "subnetwork"))):
            values = [[factor * cell[f"{kind}{key}"] for cell in collect(found, count)] for count in counts]
            means = [float(np.mean(each)) for each in values]
            spread = [float(np.std(each)) for each in values]
            name = label if axes is panels[0] else None
            axes.errorbar(counts, means, yerr=spread, capsize=3, label=name, **marker_style(index))
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("M")
        axes.set_xticks(counts)
        style_axes(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)


RECIPE = Recipe(
    id="mimo/figure-5",
    title="Members and ensemble against M",
    question="How many subnetworks does a network hold?",
    source="figure 5, section 3.4",
    scales={
        "smoke": Scale("100 digits, half of SmallCNN, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            "The fast network on 5,000 rows of CIFAR-10, of which 500 are held out, with the fast recipe, 40 epochs, ρ = 0; "
            "three seeds. Bars are standard deviations over seeds.",
            list_cells("cpu"),
            ("cifar10",),
        ),
        "paper": Scale("WRN-28-10 on CIFAR-10, 250 epochs.", list_cells("paper"), ("cifar10",)),
    },
    measure=measure,
    measured=Scores,
    tabulate=tabulate,
    judge=judge,
    columns={
        "members": "members",
        "accuracy": "ensemble, %",
        "member_accuracy": "subnetwork, %",
        "nll": "NLL, ensemble",
        "member_nll": "NLL, subnetwork",
        "calibrated": "calibrated NLL",
    },
    draw=draw,
)
