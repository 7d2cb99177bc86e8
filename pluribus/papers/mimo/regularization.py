"""What figures 7, 8 and 9 share: networks with M = 1, 2 and 3 along a path of L1 or L2 penalties."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...core.ensemble import Ensemble
from ...file_formats.schema import Share
from ...reports.svg import marker_style, style_axes
from ..classification_scores import Difference, Scores, compare_cells, measure_scores
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, judge_claim
from .configurations import SEEDS, configure, describe_mimo, require_regime

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = (1, 2, 3)
STRENGTHS = {"l1": (0.0, 1e-6, 1e-5, 3e-5, 1e-4), "l2": (0.0, 1e-3, 3e-3, 1e-2, 3e-2)}
"""Of λ in λ·Σ|w|, and of weight decay. The other penalty is zero, as in the paper. The fast recipe has a decay of 3e-3."""
ZERO = 1e-4
"""A weight below it counts as zero: footnote 6 of the paper."""
NARROW: dict[str, Json] = {
    "smoke": {},
    "cpu": {"model": {"name": "fast-cnn", "width": 0.25}, "recipe": "fast-sgd"},
    "paper": {},
}
"""A quarter of the fast network at scale cpu: where a path is looked at, there are many runs. They train by SGD, as the paper's
do: Muon would make steps of one length from the gradients of a penalty, however weak it is."""


class Measured(Scores):
    """The scores, and the share of weights that are not zero."""

    left: Share


def list_cells(scale: str, kind: str) -> dict[str, Json]:
    """The cells of a path: M, strength and seed."""
    found: dict[str, Json] = {}
    for count in MEMBERS:
        for strength in STRENGTHS[kind][:: 4 if scale == "smoke" else 1]:
            for seed in range(SEEDS[scale]):
                penalties: Json = {"weight_decay": strength if kind == "l2" else 0.0}
                penalties |= {"l1": strength} if kind == "l1" else {}
                training = configure(scale, describe_mimo(count), seed, **NARROW[scale], **penalties)
                found[f"M = {count}, {strength:g}, seed {seed}"] = {"seed": seed, "training": training}
    return found


def measure(options: Json, workspace: Workspace) -> Json:
    done = train_once(options["training"], workspace)
    return measure_scores(done) | {"left": measure_left(done.ensemble)}


@torch.no_grad()
def measure_left(ensemble: Ensemble) -> float:
    """The share of the weights of an ensemble whose absolute value is above 1e-4.

    >>> import pluribus
    >>> layer = torch.nn.Linear(4, 2, bias=False)
    >>> _ = torch.nn.init.constant_(layer.weight[0], 0.5), torch.nn.init.constant_(layer.weight[1], 9e-5)
    >>> measure_left(pluribus.ensemble(layer, pluribus.Single()))
    0.5
    """
    weights = [parameter for parameter in ensemble.parameters() if parameter.dim() > 1]
    return sum(int((weight.abs() > ZERO).sum()) for weight in weights) / sum(weight.numel() for weight in weights)


def collect(found: Found, count: int, strength: float) -> list[Json]:
    """The cells of M and a strength, by seed."""
    return [cell for name, cell in found.items() if name.startswith(f"M = {count}, {strength:g}, ")]


def list_strengths(found: Found, kind: str) -> list[float]:
    """The strengths of the path that were measured."""
    return [strength for strength in STRENGTHS[kind] if collect(found, 1, strength)]


def average(found: Found, count: int, strength: float, key: str) -> float:
    return float(np.mean([cell[key] for cell in collect(found, count, strength)]))


def tabulate(found: Found, kind: str) -> list[Json]:
    return [
        {"members": f"M = {count}", "strength": f"{strength:g}"}
        | {"accuracy": 100 * average(found, count, strength, "accuracy"), "nll": average(found, count, strength, "nll")}
        | {"left": 100 * average(found, count, strength, "left")}
        for count in MEMBERS
        for strength in list_strengths(found, kind)
        if collect(found, count, strength)
    ]


def compare_loss(found: Found, kind: str, count: int) -> Difference:
    """By how much more errors grow from the weakest to the strongest penalty with M = count than with one network."""
    weak, strong = STRENGTHS[kind][0], STRENGTHS[kind][-1]

    def find_growth(members: int) -> list[Json]:
        pairs = zip(collect(found, members, strong), collect(found, members, weak), strict=True)
        return [{"error_blocks": np.subtract(a["error_blocks"], b["error_blocks"]).tolist()} for a, b in pairs]

    return compare_cells(find_growth(count), find_growth(1), "error_blocks")


def judge(found: Found, kind: str) -> list[Verdict]:
    """The verdicts on the two claims about a path."""
    more = {count: compare_loss(found, kind, count) for count in MEMBERS[1:]}
    best = max(average(found, 1, strength, "accuracy") for strength in list_strengths(found, kind))
    regime = require_regime(best)
    evidence = "errors grow more than with one network: " + ", ".join(f"M = {count} {each}" for count, each in more.items())
    verdicts = [
        judge_claim(
            "MIMO is more sensitive to regularisation than one network.",
            "from the weakest to the strongest penalty, errors grow more than with M = 1 beyond the interval, for M = 2 and 3; "
            "direction: for M = 3",
            evidence,
            all(each.low > 0 for each in more.values()),
            more[3].low > 0,
        ),
        judge_claim(
            "The larger M, the stronger the effect.",
            "errors grow more with M = 3 than with M = 2, and with M = 2 than with M = 1; direction: with M = 3 than with "
            "M = 1",
            evidence,
            more[3].value > more[2].value > 0,
            more[3].value > 0,
        ),
    ]
    return [regime.excuse(verdict) for verdict in verdicts]


def draw_path(figure: "Figure", result: Json, kind: str, by: str) -> None:
    """Draw accuracy and log-likelihood against the strength of a penalty, or against the share of weights that are left."""
    figure.set_size_inches(8, 3.6)
    panels = figure.subplots(1, 2)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    strengths = list_strengths(found, kind)
    for axes, key, factor, title in (
        (panels[0], "accuracy", 100.0, "accuracy, %"),
        (panels[1], "nll", -1.0, "log-likelihood, nats"),
    ):
        for index, count in enumerate(MEMBERS):
            values = [factor * average(found, count, strength, key) for strength in strengths]
            places: list[Any] = list(range(len(strengths)))
            if by == "left":
                places = [100 * (1 - average(found, count, strength, "left")) for strength in strengths]
            label = f"M = {count}" if axes is panels[0] else None
            axes.plot(places, values, label=label, **marker_style(index))
        if by == "left":
            axes.set_xlabel("weights below 1e-4, %")
        else:
            axes.set_xticks(range(len(strengths)), [f"{strength:g}" for strength in strengths])
            axes.set_xlabel({"l1": "L1 penalty λ", "l2": "weight decay"}[kind])
        axes.set_title(title, loc="left", fontsize=11)
        style_axes(axes)
    figure.legend(loc="outside lower center", ncols=len(MEMBERS), frameon=False)


COLUMNS = {
    "members": "members",
    "strength": "penalty",
    "accuracy": "accuracy, %",
    "nll": "NLL",
    "left": "weights above 1e-4, %",
}
ABOUT = {
    "smoke": "100 digits, half of SmallCNN, 1 epoch.",
    "cpu": "A quarter of the fast network on 5,000 rows of CIFAR-10, the recipe fast-sgd but for its penalties, 40 epochs, "
    "ρ = 0; M = 1, 2, 3; five strengths, three seeds.",
    "paper": "WRN-28-10 on CIFAR-10, 250 epochs, M = 1, 2, 3.",
}
ABSENT = {"the row of CIFAR-100": "the set is not among those that can be had"}


def build_recipe(number: int, title: str, kind: str, by: str) -> Recipe:
    """The recipe of one of the figures: against the strength of a penalty, or against the share of weights that are left."""
    return Recipe(
        id=f"mimo/figure-{number}",
        title=title,
        question="Does MIMO suffer more than one network where capacity is constrained?",
        source=f"figure {number}, appendix C",
        scales={
            scale: Scale(about, list_cells(scale, kind), () if scale == "smoke" else ("cifar10",), ABSENT)
            for scale, about in ABOUT.items()
        },
        measure=measure,
        measured=Measured,
        tabulate=functools.partial(tabulate, kind=kind),
        judge=functools.partial(judge, kind=kind),
        columns=COLUMNS,
        draw=functools.partial(draw_path, kind=kind, by=by),
    )
