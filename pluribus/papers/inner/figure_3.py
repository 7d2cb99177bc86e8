"""inner/figure-3: errors by the number of copies. The trainings with four copies, and of the base, are those of table 1."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...reports.svg import line_style, marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale
from ..verdicts import Verdict, judge_claim
from . import networks
from .error_claims import average, collect, compare_rows, list_networks, require_regime, tabulate
from .rows import BASE, DENSE, IEN, MAXOUT, SINGLE, Row, describe_inner, describe_maxout, list_cells
from .trained_rows import Measured, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COPIES = (2, 4, 8)
NETWORKS = {"smoke": ("ResNet-8",), "cpu": ("ResNet-8", "VGG9"), "paper": tuple(networks.NETWORKS["paper"])}
"""Maxout with eight copies costs seven times as much as a base network: at scale cpu two of the four networks are trained."""


def name_row(method: str, copies: int) -> str:
    return f"{method}, m = {copies}"


def list_rows() -> dict[str, Row]:
    rows = {BASE: Row(SINGLE)}
    for copies in COPIES:
        rows[name_row(IEN, copies)] = Row(describe_inner(copies))
        rows[name_row(DENSE, copies)] = Row(describe_inner(copies, include="*"))
        rows[name_row(MAXOUT, copies)] = Row(describe_maxout(copies))
    return rows


def count_better(found: Found, methods: tuple[str, ...]) -> tuple[int, int]:
    """In how many pairs of network and setting a method has fewer errors than the base network, and how many there are."""
    pairs = [(network, name_row(method, m)) for network in list_networks(found) for method in methods for m in COPIES]
    better = [average(found, row, network=network) > average(found, BASE, network=network) for network, row in pairs]
    return sum(better), len(pairs)


def judge(found: Found) -> list[Verdict]:
    regime = require_regime(found)
    against = {m: compare_rows(found, name_row(IEN, m), name_row(MAXOUT, m)) for m in COPIES}
    fewer = {m: compare_rows(found, name_row(IEN, m), name_row(IEN, COPIES[-1])) for m in COPIES[:-1]}
    better, count = count_better(found, (IEN, DENSE))
    good, tries = count_better(found, (MAXOUT,))
    verdicts = [
        judge_claim(
            "IEN outperforms maxout at every m.",
            "fewer errors, over all networks, beyond the interval at m = 2, 4 and 8; direction: fewer at each",
            list_differences("errors against maxout", against),
            all(gain.high < 0 for gain in against.values()),
            all(gain.value < 0 for gain in against.values()),
        ),
        judge_claim(
            "Most of the time IEN and IEN+FC outperform the base network.",
            "fewer errors than the base network in more than half of all pairs of network and setting; direction: in more than "
            "a third",
            f"in {better} of {count}",
            2 * better > count,
            3 * better > count,
        ),
        judge_claim(
            "Most of the time maxout performs worse than the base network.",
            "more errors in more than half of all pairs of network and m; direction: in more than a third",
            f"fewer in {good} of {tries}",
            2 * (tries - good) > tries,
            3 * (tries - good) > tries,
        ),
        judge_claim(
            "Two and four copies are much better than eight.",
            "fewer errors of IEN, over all networks, beyond the interval; direction: fewer",
            list_differences("errors against m = 8", fewer),
            all(gain.high < 0 for gain in fewer.values()),
            all(gain.value < 0 for gain in fewer.values()),
        ),
    ]
    return [regime.excuse(verdict) for verdict in verdicts]


def list_differences(what: str, differences: Mapping[int, object]) -> str:
    return f"{what}: " + ", ".join(f"m = {m} {each}" for m, each in differences.items())


def draw(figure: "Figure", result: Json) -> None:
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    names = list_networks(found)
    figure.set_size_inches(max(4.5, 4 * min(len(names), 3)), 3.4 * -(-len(names) // 3))
    for axes, network in zip(np.ravel(figure.subplots(-(-len(names) // 3), min(len(names), 3))), names, strict=False):
        for index, method in enumerate((IEN, DENSE, MAXOUT)):
            cells = [collect(found, name_row(method, m), network) for m in COPIES]
            values = [[100 * cell["accuracy"] for cell in each] for each in cells]
            means, bars = [float(np.mean(each)) for each in values], [float(np.std(each)) for each in values]
            axes.errorbar(COPIES, means, yerr=bars, capsize=3, label=method, **marker_style(index))
        axes.axhline(100 * average(found, BASE, network=network), label=BASE, **line_style(3) | {"linestyle": "--"})
        axes.set_xscale("log", base=2)
        axes.minorticks_off()
        axes.set_xticks(COPIES, list(map(str, COPIES)))
        axes.set_xlabel("m")
        axes.set_title(f"{network}: accuracy, %", loc="left", fontsize=11)
        axes.legend(frameon=False, fontsize=8)
        style_axes(axes)


RECIPE = Recipe(
    id="inner/figure-3",
    title="Errors by the number of copies",
    question="How many copies are best?",
    source="figure 3, section 4.1",
    scales={
        name: Scale(
            networks.ABOUT[name].replace("m = 4", "m = 2, 4 and 8"),
            list_cells(name, list_rows(), NETWORKS[name]),
            networks.DATA[name],
            networks.NOT_RUN | {"ResNet-14 and DenseNet-10": "maxout with eight copies takes too long"}
            if name == "cpu"
            else {},
        )
        for name in ("smoke", "cpu", "paper")
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"method": "errors, %"} | {name: name for name in networks.list_networks()},
    draw=draw,
)
