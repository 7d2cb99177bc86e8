"""inner/table-1: errors of inner ensembles, maxout and base networks, and of what they fold into.

Three rows are not in the paper: the base network at lr/m and m·wd in its convolutions, which is the same training as an inner
ensemble under SGD; the base network at m·lr; and lean copies. Two more are trained in double precision, where rounding does
not part trainings that are the same: in single precision it does, after some hundred steps.
"""

from typing import TYPE_CHECKING

from ...reports.svg import marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale
from ..verdicts import Precondition, Verdict, format_percent, judge_claim
from . import networks
from .error_claims import (
    average,
    collect,
    compare_rows,
    judge_chance,
    judge_fewer,
    judge_same,
    list_networks,
    require_regime,
    tabulate,
)
from .rows import (
    BASE,
    BASE_FOLDED,
    DENSE,
    EXACT,
    EXACT_LEAN,
    FAST,
    IEN,
    INVERSE,
    LEAN,
    MAXOUT,
    MAXOUT_FOLDED,
    MEAN,
    ROWS,
    SLOW,
    list_cells,
)
from .trained_rows import Measured, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVERYWHERE = (IEN, MEAN, INVERSE, DENSE, MAXOUT, MAXOUT_FOLDED, BASE, BASE_FOLDED, SLOW, FAST)
"""Rows of all networks. The others are those of the first network alone: they differ from IEN by rounding."""
DRAWN = (IEN, DENSE, MAXOUT, BASE, SLOW, FAST)
ALIKE, LITTLE, LESS_LITTLE = 0.1, 0.001, 0.01
"""Copies are alike if they lie at most so far from their mean; folding loses nothing if errors change by at most so much."""
SINGLE_ROUNDING, DOUBLE_ROUNDING = 1e-3, 1e-6
"""Outputs in single precision, and after a training in double precision, are the same up to this."""
PAPER = {
    INVERSE: "6.93 6.27 7.50 5.22 6.80 6.79 29.34 28.17 29.37 23.76 28.49 29.40",
    IEN: "6.93 6.28 7.5 5.22 6.79 6.79 29.34 28.16 29.37 23.76 28.50 29.41",
    DENSE: "6.49 5.94 6.89 5.04 6.85 7.15 28.20 27.34 29.76 23.67 29.33 31.81",
    MAXOUT_FOLDED: "89.99 90 89.70 90 90 90 99.01 99 99 99 99 99",
    MAXOUT: "7.98 6.32 7.34 6.16 7.71 8.16 31.8 29.47 30.49 28.88 31.68 34.32",
    BASE_FOLDED: "89.99 90 90 90 90 90 98.96 99.14 99 90 99 99",
    BASE: "8.38 6.38 7.20 5.6 7.00 7.02 29.97 27.83 29.85 24.01 29.27 30.92",
}


def list_table_cells(scale: str) -> dict[str, Json]:
    first = (next(iter(networks.NETWORKS[scale])),)
    cells = list_cells(scale, {name: ROWS[name] for name in EVERYWHERE})
    cells |= list_cells(scale, {LEAN: ROWS[LEAN]}, first)
    exact = list_cells(scale, {name: ROWS[name] for name in (EXACT, EXACT_LEAN)}, first)
    return cells | {name: cell for name, cell in exact.items() if cell["seed"] == 0}


def judge(found: Found) -> list[Verdict]:
    regime = require_regime(found)
    published = [
        judge_fewer("Inner ensembles of convolutions improve the base network.", found, IEN, (BASE,)),
        judge_fewer("Inner ensembles of all layers improve the base network.", found, DENSE, (BASE,)),
        judge_fewer("Inner ensembles outperform maxout.", found, IEN, (MAXOUT,)),
    ]
    return [
        *(regime.excuse(verdict) for verdict in published),
        judge_inverse_variance(found),
        judge_chance("Maxout cannot be folded: averaged copies guess.", found, MAXOUT_FOLDED, MAXOUT),
        judge_chance("Base networks cannot be folded: their average guesses.", found, BASE_FOLDED, BASE),
        judge_mean(found),
        judge_identity(found),
        *judge_learning_rate(found),
    ]


def judge_inverse_variance(found: Found) -> Verdict:
    """Eq. 11 comes near the trained function as copies grow alike, which weight decay alone makes them do."""
    spread = average(found, IEN, "spread")
    changes = {network: compare_rows(found, INVERSE, IEN, network).value for network in list_networks(found)}
    largest = max(map(abs, changes.values()))
    verdict = judge_claim(
        "An inner ensemble that is folded by inverse variance performs as it did.",
        f"errors change by at most {100 * LITTLE:g} points in every network (the paper's by 0.01); direction: by at most "
        f"{100 * LESS_LITTLE:g}",
        "errors change by " + ", ".join(f"{change:+.4f} ({network})" for network, change in changes.items()),
        largest <= LITTLE,
        largest <= LESS_LITTLE,
    )
    return Precondition(
        f"copies have grown alike: they lie at most {format_percent(ALIKE, 0)} of their mean's norm from it",
        f"they lie {format_percent(spread, 0)} from it",
        spread <= ALIKE,
    ).excuse(verdict)


def judge_mean(found: Found) -> Verdict:
    shift = max(cell["shift"] for cell in collect(found, MEAN))
    changed = max(abs(compare_rows(found, MEAN, IEN, network).value) for network in list_networks(found))
    return judge_claim(
        "Not in the paper: the plain mean of the copies is the trained function.",
        f"outputs change by at most {SINGLE_ROUNDING:g} in every network; direction: errors change by at most {100 * LITTLE:g} "
        "points",
        f"outputs change by at most {shift:.1e}, errors by {changed:.5f}",
        shift <= SINGLE_ROUNDING,
        changed <= LITTLE,
    )


def judge_identity(found: Found) -> Verdict:
    shifts = {row: max(cell["shift"] for cell in collect(found, row)) for row in (EXACT, EXACT_LEAN)}
    return judge_claim(
        "Not in the paper: under SGD an inner ensemble is the base network at lr/m and m·wd in the same layers, and so are "
        "lean copies.",
        f"trained in double precision for an epoch, their outputs on the test rows differ from those of IEN by at most "
        f"{DOUBLE_ROUNDING:g}; direction: by at most {SINGLE_ROUNDING:g}",
        ", ".join(f"{row}: {shift:.1e}" for row, shift in shifts.items()),
        max(shifts.values()) <= DOUBLE_ROUNDING,
        max(shifts.values()) <= SINGLE_ROUNDING,
    )


def judge_learning_rate(found: Found) -> list[Verdict]:
    """What of a gain belongs to the learning rate, and what to the method."""
    slow, fast = compare_rows(found, SLOW, BASE), compare_rows(found, FAST, BASE)
    first = {name: cell for name, cell in found.items() if name.partition(": ")[0] == list_networks(found)[0]}
    return [
        judge_same("Not in the paper: what IEN gains or loses is what lr/m and m·wd give the base network.", found, IEN, SLOW),
        judge_fewer(
            "Not in the paper: IEN improves the base network beyond the choice of a learning rate.",
            found,
            IEN,
            (BASE, SLOW, FAST),
        ),
        judge_claim(
            "Not in the paper: the learning rate alone changes the errors of the base network.",
            "errors of the base network at lr/m, m·wd or at m·lr differ from those at lr beyond the interval; direction: one "
            "of them by at least 0.5 points",
            f"at lr/m, m·wd {slow}; at m·lr {fast}",
            any(not each.low <= 0 <= each.high for each in (slow, fast)),
            max(abs(slow.value), abs(fast.value)) >= 0.005,
        ),
        judge_same("Not in the paper: lean copies have the errors of IEN (first network).", first, LEAN, IEN),
    ]


def draw(figure: "Figure", result: Json) -> None:
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    names = list_networks(found)
    figure.set_size_inches(max(4.0, 2.2 * len(names)), 3.4)
    axes = figure.subplots()
    for index, row in enumerate(DRAWN):
        for place, network in enumerate(names):
            errors = [100 * (1 - cell["accuracy"]) for cell in collect(found, row, network)]
            x = place + 0.1 * (index - (len(DRAWN) - 1) / 2)
            style = marker_style(index) | {"linestyle": "none"}
            axes.plot([x] * len(errors), errors, label=row if place == 0 else None, **style)
    axes.set_xticks(range(len(names)), names)
    axes.set_title("errors, %; a point for each seed", loc="left", fontsize=11)
    style_axes(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)


RECIPE = Recipe(
    id="inner/table-1",
    title="Errors of inner ensembles, maxout and base networks",
    question="Do inner ensembles improve a network, and is it the method or the learning rate?",
    source="table 1, section 4.1",
    scales={
        name: Scale(
            networks.ABOUT[name], list_table_cells(name), networks.DATA[name], networks.NOT_RUN if name == "cpu" else {}
        )
        for name in ("smoke", "cpu", "paper")
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"method": "errors, %"} | {name: name for name in networks.list_networks()},
    published=[
        {"method": row} | dict(zip(networks.NETWORKS["paper"], map(float, numbers.split()), strict=True))
        for row, numbers in PAPER.items()
    ],
    draw=draw,
    departures=[
        "An inner ensemble stores m copies of a layer; the authors' code stores m + 1, of which one is not used.",
        "Copies start about the weights that the base network of the same seed starts with, in the distribution of eq. 10: the "
        "rows of a seed then differ by what they learn alone.",
        "The paper folds IEN+FC; ours is as it was trained, which folding does not change.",
        "The paper does not say what is folded of a base network: here it is the average of the networks of all seeds.",
        "VGG is trained at learning rate 0.05, which is that of the repository that the paper names; it prints 0.9.",
    ],
)
