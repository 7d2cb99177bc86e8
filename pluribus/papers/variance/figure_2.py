"""variance/figure-2: the divergence of a Gaussian-dropout posterior from three priors, as a function of α."""

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from ...core.kl_divergence import EULER, K1, kl_ard, kl_log_uniform
from ...file_formats.schema import Schema, Text, Values
from ...reports.svg import line_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from .preconditions import judge_under, require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_POINTS = 200
NUS = (1e-16, 0.1, 1.0)


@cache
def quadrature_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on [−1, 1]."""
    return np.polynomial.legendre.leggauss(1001)


def integrate_log(log_alpha: np.ndarray, value: str, nu: float = 0.0) -> np.ndarray:
    """E log|1 + √α ε|, or ½ (ν + 1) E log(ν + (1 + √α ε)²), ε ~ N(0, 1), by quadrature.

    The logarithm is singular at ε = −1/√α; the substitution ε = −1/√α ± t² on each side removes the singularity.
    """
    (at, weights), results = quadrature_nodes(), []
    for root in np.exp(0.5 * log_alpha):
        zero, total = -1 / root, 0.0
        for side in (-1.0, 1.0):
            end = 40.0 - side * zero if side > 0 else 40.0 + zero
            if end <= 0:  # only the tail beyond 40 standard deviations is left
                continue
            t = np.sqrt(end) * (at + 1) / 2
            epsilon = zero + side * t**2
            density = np.exp(-0.5 * epsilon**2) / np.sqrt(2 * np.pi)
            w = 1 + root * epsilon
            logs = np.log(np.abs(w)) if value == "log-uniform" else 0.5 * (nu + 1) * np.log(nu + w**2)
            total += np.sum(weights * logs * density * 2 * t) * np.sqrt(end) / 2
        results.append(total)
    return np.array(results)


class Measured(Schema):
    """The divergence over log α, by prior."""

    log_alpha: Values
    curves: dict[Text, Values]


def measure(options: Json, workspace: Workspace) -> Json:
    log_alpha = np.linspace(-10, 10, options["points"])
    grid = torch.from_numpy(log_alpha)
    exact = 0.5 * (EULER + np.log(2)) - 0.5 * log_alpha + integrate_log(log_alpha, "log-uniform")
    curves = {
        "log-uniform, exact": exact.tolist(),
        "log-uniform, approximation": kl_log_uniform(grid).tolist(),
        "ARD": kl_ard(grid).tolist(),
    }
    for nu in NUS:  # for a weight with mean 1, up to a constant: shifted to end at zero
        values = -0.5 * log_alpha + integrate_log(log_alpha, "student", nu)
        curves[f"Student's t, ν = {nu:g}"] = (values - values[-1]).tolist()
    return {"log_alpha": log_alpha.tolist(), "curves": curves}


def tabulate(found: Found) -> list[Json]:
    if not found:
        return []
    cell = found["curves"]
    table = []
    for name, curve in cell["curves"].items():
        values = dict(zip(np.round(cell["log_alpha"], 6).tolist(), curve, strict=True))
        steps = np.diff(curve)
        table.append(
            {"prior": name, "low": values[-10.0], "middle": values[0.0], "high": values[10.0], "falls": bool((steps < 0).all())}
        )
    return table


def judge(found: Found) -> list[Verdict]:
    curves = {name: np.array(curve) for name, curve in found["curves"]["curves"].items()}
    exact = curves["log-uniform, exact"]
    error = np.abs(curves["log-uniform, approximation"] - exact).max()
    small = np.abs((curves["Student's t, ν = 1e-16"]) - (exact - exact[-1])).max()
    falling = [name for name, curve in curves.items() if (np.diff(curve) < 0).all()]
    three = ("log-uniform, exact", "log-uniform, approximation", "ARD", "Student's t, ν = 1e-16")
    fine = require(
        f"there are at least {LEAST_POINTS} values of log α",
        "values",
        {"": float(len(found["curves"]["log_alpha"]))},
        lambda count: count >= LEAST_POINTS,
        "{:.0f}".format,
    )
    verdicts = [
        judge_claim(
            "The divergence falls with α for all three priors.",
            "at every step from log α = −10 to 10, for log-uniform, ARD and Student's t with the paper's ν",
            f"falling everywhere: {', '.join(falling)}",
            all(name in falling for name in three),
        ),
        judge_claim(
            "For small ν Student's prior cannot be told from the log-uniform one.",
            "ν = 1e-16: the curves differ by less than 1e-6 nats",
            f"by at most {small:.1g} nats",
            bool(small < 1e-6),
        ),
        judge_claim(
            "The approximation of the log-uniform divergence is accurate.",
            f"within 0.01 nats of quadrature everywhere (k₁ = {K1})",
            f"within {error:.4f} nats",
            bool(error < 0.01),
        ),
    ]
    return judge_under(verdicts, fine)


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(7, 4.2)
    axes = figure.add_subplot()
    cell = result["cells"]["curves"]["found"]
    for index, (name, curve) in enumerate(cell["curves"].items()):
        axes.plot(cell["log_alpha"], curve, label=name, **line_style(index))
    axes.set_title("KL of N(μ, αμ²) from the prior, for one weight", loc="left", fontsize=11)
    axes.set_xlabel("log α")
    axes.set_ylabel("KL, nats, up to a constant")
    style_axes(axes)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)


RECIPE = Recipe(
    id="variance/figure-2",
    title="Divergence against α",
    question="Do all three priors push α to infinity?",
    source="figure 2, section 4.2",
    scales={
        "smoke": Scale("41 points.", {"curves": {"points": 41}}),
        "cpu": Scale("Theory: 201 points, integrals by quadrature.", {"curves": {"points": 201}}),
        "paper": Scale("Theory: 201 points.", {"curves": {"points": 201}}),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"prior": "prior", "low": "log α = −10", "middle": "log α = 0", "high": "log α = 10", "falls": "falls everywhere"},
    draw=draw,
    departures=["Eq. 11 lacks a factor ½, and the earlier version's eq. 10 has its sign flipped: ours are the corrected ones."],
)
