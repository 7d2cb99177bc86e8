"""mimo/figure-6: (a) input repetition in a narrow and a wide network, (b) batch repetition."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...reports.svg import marker_style, style_axes
from ..classification_scores import Scores, compare_cells, measure_scores
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import HALF, SEEDS, WIDTH, configure, describe_mimo, require_regime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
REPETITIONS = (1, 2, 4)
WIDTHS = {"narrow": HALF, "wide": WIDTH}
"""Of the fast network at scale cpu: the wide one has twice the filters, as the paper's Wide ResNet50 has."""
MODELS: dict[str, dict[str, Any]] = {
    "smoke": {"narrow": "small-cnn:width=0.25", "wide": "small-cnn:width=0.5"},
    "cpu": {name: {"name": "fast-cnn", "width": width} for name, width in WIDTHS.items()},
    "paper": {"narrow": {"name": "wrn", "depth": 28, "width": 5}, "wide": "wrn-28-10"},
}


def list_cells(scale: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for seed in range(SEEDS[scale]):
        for size, model in MODELS[scale].items():
            for method, name in [({"name": "single"}, "one network"), *((repeat_inputs(s), f"ρ = {s:g}") for s in SHARES)]:
                training = configure(scale, method, seed, model=model)
                found[f"{size}, {name}, seed {seed}"] = {"seed": seed, "training": training}
        for times in REPETITIONS:
            method = describe_mimo(3, batch_repetition=times, init="fresh")
            found[f"repetition, {times}, seed {seed}"] = {"seed": seed, "training": configure(scale, method, seed, HALF)}
    return found


def repeat_inputs(share: float) -> Json:
    """MIMO with two members that see the same row with this probability. Heads that see the same must start apart."""
    return describe_mimo(2, input_repetition=share, init="fresh")


def measure(options: Json, workspace: Workspace) -> Json:
    return measure_scores(train_once(options["training"], workspace))


def collect(found: Found, name: str) -> list[Json]:
    """The cells of a setting, by seed."""
    return [cell for key, cell in found.items() if key.rpartition(", ")[0] == name]


def average(found: Found, name: str, key: str) -> float:
    return float(np.mean([cell[key] for cell in collect(found, name)]))


def list_settings(found: Found) -> list[str]:
    return list(dict.fromkeys(key.rpartition(", ")[0] for key in found))


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "setting": name,
            "accuracy": 100 * average(found, name, "accuracy"),
            "member_accuracy": 100 * average(found, name, "member_accuracy"),
            "nll": average(found, name, "nll"),
            "calibrated": average(found, name, "calibrated_nll"),
            "disagreement": 100 * average(found, name, "disagreement"),
        }
        for name in list_settings(found)
    ]


def judge(found: Found) -> list[Verdict]:
    accuracy = {size: {share: average(found, f"{size}, ρ = {share:g}", "accuracy") for share in SHARES} for size in WIDTHS}
    best = {size: max(SHARES, key=accuracy[size].__getitem__) for size in WIDTHS}
    gain = {size: accuracy[size][best[size]] - accuracy[size][0.0] for size in WIDTHS}
    inner = {
        share: compare_cells(collect(found, f"narrow, ρ = {share:g}"), collect(found, "narrow, ρ = 0"), key="error_blocks")
        for share in SHARES[1:-1]
    }
    ends = compare_cells(collect(found, f"narrow, ρ = {best['narrow']:g}"), collect(found, "narrow, ρ = 1"), "error_blocks")
    repeated = {
        times: compare_cells(collect(found, f"repetition, {times}"), collect(found, "repetition, 1")) for times in (2, 4)
    }
    regime = require_regime(average(found, "wide, one network", "accuracy"))
    verdicts = [
        judge_claim(
            "Where capacity is short, subnetworks that share some inputs are better than independent ones.",
            "in the narrow network, fewer errors than at ρ = 0 beyond the interval for at least one ρ from 0.2 to 0.8; "
            "direction: fewer",
            "errors against ρ = 0: " + ", ".join(f"ρ = {share:g} {each}" for share, each in inner.items()),
            any(each.high < 0 for each in inner.values()),
            any(each.value < 0 for each in inner.values()),
        ),
        judge_claim(
            "Near ρ = 1 the benefit of an ensemble is lost: about 0.6 is best.",
            "in the narrow network, the best ρ is 0.4, 0.6 or 0.8, with fewer errors than at ρ = 1 beyond the interval; "
            "direction: fewer than at ρ = 1",
            f"best at ρ = {best['narrow']:g}; errors against ρ = 1: {ends}",
            best["narrow"] in (0.4, 0.6, 0.8) and ends.high < 0,
            ends.value < 0,
        ),
        judge_claim(
            "A wider network benefits less from it.",
            "the gain in accuracy of the best ρ over ρ = 0 is smaller in the wide network by at least half; direction: smaller",
            ", ".join(f"{size} {format_percent(each, 1)}" for size, each in gain.items()),
            gain["wide"] <= gain["narrow"] / 2,
            gain["wide"] < gain["narrow"],
        ),
        judge_claim(
            "Repeating examples in a batch gives a slight boost.",
            "NLL below that without repetition beyond the interval, twice and four times; direction: four times",
            ", ".join(f"{times} times {each}" for times, each in repeated.items()),
            all(each.high < 0 for each in repeated.values()),
            repeated[4].high < 0,
        ),
    ]
    return [regime.excuse(verdict) for verdict in verdicts]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(9, 3.6)
    panels = figure.subplots(1, 2)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    for index, size in enumerate(WIDTHS):
        values = [[100 * cell["accuracy"] for cell in collect(found, f"{size}, ρ = {share:g}")] for share in SHARES]
        bars = [float(np.std(each)) for each in values]
        style = marker_style(index)
        panels[0].errorbar(SHARES, [float(np.mean(each)) for each in values], yerr=bars, capsize=3, label=size, **style)
        one = 100 * average(found, f"{size}, one network", "accuracy")
        panels[0].axhline(one, color=style["color"], linestyle=":", linewidth=1, label=f"{size}, one network")
    panels[0].set_title("(a) accuracy by input repetition, M = 2, %", loc="left", fontsize=11)
    panels[0].set_xlabel("ρ")
    panels[0].legend(frameon=False, fontsize=8)
    values = [[cell["nll"] for cell in collect(found, f"repetition, {times}")] for times in REPETITIONS]
    bars = [float(np.std(each)) for each in values]
    panels[1].errorbar(REPETITIONS, [float(np.mean(each)) for each in values], yerr=bars, capsize=3, **marker_style(0))
    panels[1].set_title("(b) NLL by batch repetition, M = 3", loc="left", fontsize=11)
    panels[1].set_xlabel("how often a batch has each example")
    panels[1].set_xticks(list(REPETITIONS))
    for axes in panels:
        style_axes(axes)


RECIPE = Recipe(
    id="mimo/figure-6",
    title="Input and batch repetition",
    question="Should subnetworks share inputs, and a batch its examples?",
    source="figure 6, section 3.5",
    scales={
        "smoke": Scale("100 digits, an eighth and a quarter of SmallCNN, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            "(a) The fast network, half as wide and as it is, on 5,000 rows of CIFAR-10, M = 2, in place of ResNet50 and the "
            "twice as wide one on ImageNet; (b) half as wide, M = 3, ρ = 0. The fast recipe, 40 epochs, three seeds.",
            list_cells("cpu"),
            ("cifar10",),
        ),
        "paper": Scale(
            "(a) WRN-28-5 and WRN-28-10 on CIFAR-10, in place of ResNet50 and the twice as wide one; (b) WRN-28-10 on "
            "CIFAR-10; 250 epochs.",
            list_cells("paper"),
            ("cifar10",),
            {"(a) on ImageNet": "the set is not among those that can be had"},
        ),
    },
    measure=measure,
    measured=Scores,
    tabulate=tabulate,
    judge=judge,
    columns={
        "setting": "setting",
        "accuracy": "accuracy, %",
        "member_accuracy": "subnetwork, %",
        "nll": "NLL",
        "calibrated": "calibrated NLL",
        "disagreement": "disagreement, %",
    },
    draw=draw,
    departures=[
        "In figure-6 heads start from independent weights, as published: equal ones never part at ρ = 1. In figure-5 and "
        "figures 7 to 9 they start equal, which is our default, because it is better (results/ablations/mimo-heads.json)."
    ],
)
