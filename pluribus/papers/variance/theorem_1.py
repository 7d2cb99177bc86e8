"""variance/theorem-1: how far the posterior is from its zero-mean approximation, and when the bound says anything."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field

from ...file_formats.schema import MOST_ENTRIES, Finite, NotNegative, Schema, Size, Text
from ...reports.svg import MUTED, line_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from .discrepancy import VACUOUS, distance, mmd, mmd_bound, prediction_bound
from .preconditions import judge_under, require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS = {
    "one weight": (1, (0.0, 7.0, 15.0)),
    "LeNet-5, first dense layer": (800 * 500, (6.9, 15.0, 20.0)),
    "VGG-like, convolution of 512 channels": (512 * 512 * 9, (7.0, 15.0, 20.0)),
    "VGG-like, first dense layer": (512 * 512, (7.0, 12.0, 20.0)),
}
"""Weights, and some log α; 6.9, 15 and 12 are what the paper's networks reached."""


MOST_ERROR = 0.005
"""The largest standard error of a sampled distance with which it is compared."""


class BoundRow(Schema):
    """The bound of the theorem for a layer at one log α, beside the exact distance and the bound for predictions."""

    layer: Text
    weights: Size
    log_alpha: Finite
    bound: NotNegative
    exact: NotNegative
    prediction: NotNegative
    vacuous: bool


class SampledRow(Schema):
    """The distance that draws showed, its standard error, and the exact distance."""

    weights: Size
    log_alpha: Finite
    seen: NotNegative
    error: NotNegative
    exact: NotNegative


class Measured(Schema):
    """The bounds, and the distances that were sampled."""

    table: Annotated[list[BoundRow], Field(min_length=1, max_length=MOST_ENTRIES)]
    drawn: Annotated[list[SampledRow], Field(max_length=MOST_ENTRIES)]


def measure(options: Json, workspace: Workspace) -> Json:
    table = []
    for name, (weights, points) in LAYERS.items():
        for log_alpha in points:
            bound = mmd_bound(log_alpha, weights)
            table.append(
                {
                    "layer": name,
                    "weights": weights,
                    "log_alpha": log_alpha,
                    "bound": bound,
                    "exact": mmd(log_alpha, weights),
                    "prediction": prediction_bound(log_alpha, weights),
                    "vacuous": bound >= VACUOUS,
                }
            )
    return {"table": table, "drawn": sample_supremum(options["draws"], options["seed"])}


def sample_supremum(draws: int, seed: int) -> list[Json]:
    """Estimate the supremum from draws of all D weights: the sign of the difference of the densities attains it.

    With w_i / (√α μ_i) = ε_i, plus 1/√α under q, that is the sign of D/2 − √α Σ_i w_i/(√α μ_i).
    """
    generator = torch.Generator().manual_seed(seed)
    found = []
    for weights, log_alpha in ((1, 0.0), (10, 1.0), (50, 3.0), (50, 8.0)):
        noise = torch.randn(2, draws, weights, generator=generator, dtype=torch.double)
        alpha = np.exp(log_alpha)
        total = noise.sum(2) * np.sqrt(alpha)  # √α Σ ε under q⁰ …
        total[1] += weights  # … and with its mean under q
        f = torch.sign(weights / 2 - total)
        value, error = (f[0].mean() - f[1].mean()).item(), (f[0].var() / draws + f[1].var() / draws).sqrt().item()
        found.append(
            {"weights": weights, "log_alpha": log_alpha, "seen": value, "error": error, "exact": mmd(log_alpha, weights)}
        )
    return found


def tabulate(found: Found) -> list[Json]:
    return [dict(row) for row in found["theory"]["table"]] if found else []


def judge(found: Found) -> list[Verdict]:
    cell = found["theory"]
    ratios = [row["bound"] / row["exact"] for row in cell["table"]]
    off = max(abs(row["seen"] - row["exact"]) / row["error"] for row in cell["drawn"])
    limit = mmd(60.0, 10**6)
    reached = [row for row in cell["table"] if (row["layer"], row["log_alpha"]) in REACHED]
    empty = [row["layer"] for row in reached if row["vacuous"]]
    sides = require(
        "rows lie on both sides of where the bound is vacuous",
        "rows",
        {
            "vacuous": float(sum(row["vacuous"] for row in cell["table"])),
            "not vacuous": float(sum(not row["vacuous"] for row in cell["table"])),
        },
        lambda count: count >= 1,
        "{:.0f}".format,
    )
    precise = require(
        f"the standard errors of the draws are at most {MOST_ERROR:g}",
        "largest",
        {"": max(row["error"] for row in cell["drawn"])},
        lambda error: error <= MOST_ERROR,
        "{:.4f}".format,
    )
    whole = require(
        "the layers are those of the paper, at the α that it reached",
        "of its three layers",
        {"there are": float(len(reached))},
        lambda count: count == len(REACHED),
        "{:.0f}".format,
    )
    bound, supremum, dropped = (
        judge_claim(
            "The discrepancy is at most √(2/π)·√(D/α), and goes to zero with α.",
            "the exact supremum is below the bound in every row, and below 1e-6 at log α = 60 for a million weights",
            f"bound ÷ exact from {min(ratios):.3f} on; {limit:.1g} in the limit",
            min(ratios) >= 1 and limit < 1e-6,
        ),
        judge_claim(
            "The exact supremum 2(2Φ(½√(D/α)) − 1) is attained.",
            "by the best f in draws of all weights, within 4 standard errors",
            f"at most {off:.1f} standard errors off",
            off < 4,
        ),
        judge_claim(
            "At the α that the networks reach the means can be dropped without affecting predictions.",
            "the paper's bound is not vacuous in any of its layers, and the averaged probability cannot change by more than "
            "0.01; direction: not vacuous in some",
            ", ".join(
                f"{row['layer']} at {row['log_alpha']:g}: probabilities by up to {row['prediction']:.2f}" for row in reached
            )
            + (f"; vacuous: {', '.join(empty)}" if empty else ""),
            not empty and max(row["prediction"] for row in reached) <= 0.01,
            len(empty) < len(reached),
        ),
    )
    return [*judge_under([bound], sides), *judge_under([supremum], precise), *judge_under([dropped], whole)]


REACHED = (
    ("LeNet-5, first dense layer", 6.9),
    ("VGG-like, convolution of 512 channels", 15.0),
    ("VGG-like, first dense layer", 12.0),
)


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(7, 4.2)
    axes = figure.add_subplot()
    z = np.logspace(-2, 1.5, 200)  # √(D/α): all that both depend on
    exact = [mmd(-2 * np.log(at), 1) for at in z]
    bound = [mmd_bound(-2 * np.log(at), 1) for at in z]
    axes.axhspan(VACUOUS, 10, color="#f6f7f9", zorder=0)
    axes.text(0.012, 2.6, "vacuous: no two distributions are further apart than 2", color=MUTED, fontsize=9)
    axes.plot(z, exact, label="exact supremum", **line_style(0))
    axes.plot(z, bound, label="bound of theorem 1", **line_style(1))
    for place, (name, log_alpha) in enumerate(REACHED):
        at = distance(log_alpha, LAYERS[name][0])
        axes.plot(
            [at],
            [mmd(log_alpha, LAYERS[name][0])],
            "o",
            color=line_style(place + 2)["color"],
            label=f"{name}, log α = {log_alpha:g}",
        )
    axes.set(xscale="log", yscale="log", ylim=(0.005, 10))
    axes.set_title("Distance of the posterior from its zero-mean approximation", loc="left", fontsize=11)
    axes.set_xlabel("√(D/α)")
    axes.set_ylabel("MMD over |f| ≤ 1")
    style_axes(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)


RECIPE = Recipe(
    id="variance/theorem-1",
    title="Distance from the zero-mean approximation",
    question="When can the means be dropped?",
    source="theorem 1, appendix A, eq. 38",
    scales={
        "smoke": Scale("Theory, and 2,000 draws.", {"theory": {"draws": 2_000, "seed": 0}}),
        "cpu": Scale("Theory, and 200,000 draws of the weights.", {"theory": {"draws": 200_000, "seed": 0}}),
        "paper": Scale("Theory, and 200,000 draws of the weights.", {"theory": {"draws": 200_000, "seed": 0}}),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "layer": "layer",
        "weights": "D",
        "log_alpha": "log α",
        "bound": "the paper's bound",
        "exact": "exact",
        "prediction": "largest change of a probability (eq. 38)",
        "vacuous": "bound is vacuous",
    },
    draw=draw,
)
