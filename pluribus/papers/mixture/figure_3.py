"""mixture/figure-3: accuracy against parameters, for methods that have a budget, and against the number of members."""

from typing import TYPE_CHECKING

import numpy as np

from ...reports.svg import marker_style, style_axes
from ..classification_scores import Difference, compare_cells
from ..recipe import Found, Json, Recipe, Scale
from ..verdicts import Verdict, format_percent, judge_claim
from .claims import average, collect, list_rows, require_regime
from .measurements import Measured, measure
from .rows import (
    BASELINE,
    BATCH_ENSEMBLE,
    BUDGETS,
    MEMBERS,
    MIMO,
    NAIVE,
    SEEDS,
    configure_budget,
    configure_narrow,
    configure_row,
)

NARROW = (0.2, 0.4)
"""Budgets that other methods meet by a narrower network."""
SMALL, BEST = 0.4, 4


def list_settings(scale: str) -> dict[str, Json]:
    """The trainings of the figure, by what is varied."""
    small = scale == "smoke"
    found = {f"mixture, {budget:g}×": configure_budget(scale, budget) for budget in (BUDGETS[1:3] if small else BUDGETS)}
    found |= {BASELINE: configure_row(scale, BASELINE), NAIVE: configure_row(scale, NAIVE)}
    for row in (BATCH_ENSEMBLE, MIMO):
        found[f"{row}, 1×"] = configure_row(scale, row)
        found |= {f"{row}, {share:g}×": configure_narrow(scale, row, share) for share in (NARROW[1:] if small else NARROW)}
    found |= {f"{count} members": configure_budget(scale, 1.0, count) for count in (MEMBERS[:2] if small else MEMBERS)}
    return found


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"{name}, seed {seed}": {"seed": seed, "scale": scale, "training": training}
        for name, training in list_settings(scale).items()
        for seed in range(SEEDS[scale])
    }


def list_budgets(found: Found, method: str = "mixture") -> list[float]:
    return [budget for budget in BUDGETS if collect(found, f"{method}, {budget:g}×")]


def list_members(found: Found) -> list[int]:
    """The numbers of members that were measured; one member is the baseline."""
    return [1, *(count for count in MEMBERS if collect(found, f"{count} members"))]


def name_members(count: int) -> str:
    return BASELINE if count == 1 else f"{count} members"


def tabulate(found: Found) -> list[Json]:
    return [
        {"setting": row, "share": average(found, row, "share"), "accuracy": 100 * average(found, row, "accuracy")}
        | {"member_accuracy": 100 * average(found, row, "member_accuracy"), "nll": average(found, row, "nll")}
        for row in list_rows(found)
    ]


def measure_loss(found: Found, method: str) -> Difference:
    """By how much errors grow from one network's parameters to 0.4 of them."""
    small, usual = collect(found, f"{method}, {SMALL:g}×"), collect(found, f"{method}, 1×")
    return compare_cells(small, usual, "error_blocks")


def judge(found: Found) -> list[Verdict]:
    budgets, counts = list_budgets(found), list_members(found)
    accuracy = [average(found, f"mixture, {budget:g}×", "accuracy") for budget in budgets]
    steps = np.diff(accuracy)
    loss = {method: measure_loss(found, method) for method in ("mixture", BATCH_ENSEMBLE, MIMO)}
    rivals = (loss[BATCH_ENSEMBLE], loss[MIMO])
    by_count = {count: average(found, name_members(count), "accuracy") for count in counts}
    others = {
        count: compare_cells(collect(found, name_members(BEST)), collect(found, name_members(count)), "error_blocks")
        for count in counts
        if count != BEST
    }
    verdicts = [
        judge_claim(
            "As the number of parameters increases, accuracy improves.",
            "accuracy rises from every budget to the next; direction: from the smallest to the largest",
            ", ".join(f"{budget:g}× {format_percent(each, 1)}" for budget, each in zip(budgets, accuracy, strict=True)),
            bool((steps > 0).all()),
            accuracy[-1] > accuracy[0],
        ),
        judge_claim(
            "Mixtures scale down more gracefully than the other methods.",
            "from 1× to 0.4×, errors grow less than those of BatchEnsemble and MIMO, and the intervals do not overlap; "
            "direction: less",
            ", ".join(f"{method} {each}" for method, each in loss.items()),
            loss["mixture"].high < min(each.low for each in rivals),
            loss["mixture"].value < min(each.value for each in rivals),
        ),
        judge_claim(
            "Four members are best.",
            "four have fewer errors than one, two and eight beyond the interval; direction: the fewest",
            ", ".join(f"{count}: {format_percent(each, 1)}" for count, each in by_count.items())
            + "; errors of four against "
            + ", ".join(f"{count} {each}" for count, each in others.items()),
            all(each.high < 0 for each in others.values()),
            max(by_count, key=by_count.__getitem__) == BEST,
        ),
    ]
    regime = require_regime(found)
    return [regime.excuse(verdict) for verdict in verdicts]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(9, 3.6)
    left, right = figure.subplots(1, 2)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    for index, method in enumerate(("mixture", BATCH_ENSEMBLE, MIMO)):
        rows = [f"{method}, {budget:g}×" for budget in list_budgets(found, method)]
        shares = [average(found, row, "share") for row in rows]
        left.plot(shares, [100 * average(found, row, "accuracy") for row in rows], label=method, **marker_style(index))
    for index, row in enumerate((BASELINE, NAIVE), start=3):
        place = (average(found, row, "share"), 100 * average(found, row, "accuracy"))
        left.plot(*place, label=row, **marker_style(index) | {"linestyle": "none"})
    left.set_xscale("log")
    left.set_xlabel("parameters, × one network's")
    left.set_title("accuracy by parameters, %", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=8)
    counts = list_members(found)
    for index, (key, label) in enumerate((("accuracy", "ensemble"), ("member_accuracy", "member"))):
        values = [[100 * cell[key] for cell in collect(found, name_members(count))] for count in counts]
        means, bars = [float(np.mean(each)) for each in values], [float(np.std(each)) for each in values]
        right.errorbar(counts, means, yerr=bars, capsize=3, label=label, **marker_style(index))
    right.set_xticks(counts)
    right.set_xlabel("members, at one network's parameters")
    right.set_title("accuracy by members, %", loc="left", fontsize=11)
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        style_axes(axes)


if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = Recipe(
    id="mixture/figure-3",
    title="Accuracy by parameters and by members",
    question="How far can a mixture be scaled down and up, and how many members should share it?",
    source="figure 3, sections 5.1 and 5.2",
    scales={
        "smoke": Scale("100 digits, a quarter of ResNet-8, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            "The fast residual network with 32 filters on CIFAR-10, the recipe fast-sgd, 8 epochs; five budgets, three numbers "
            "of members; BatchEnsemble and MIMO with fewer parameters by narrower networks; three seeds.",
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
        "setting": "setting",
        "share": "parameters, ×",
        "accuracy": "accuracy, %",
        "member_accuracy": "a member, %",
        "nll": "NLL",
    },
    draw=draw,
)
