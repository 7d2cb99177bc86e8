"""mimo/figure-2: bias and variance of MIMO with M = 1 to 5 members on a regression with one input.

    y = x + 0.3 sin(2π(x + ε)) + 0.3 sin(4π(x + ε)) + ε,    ε ~ N(0, 0.02²)

Every training set has 64 points. With f_s the mean of the members that were trained on set s, and f̄ the mean of f_s over sets,

    error = E_s E (f_s − y)² = bias² + variance,    variance = E E_s (f_s − f̄)²,    bias² = E (f̄ − y)²

over 3,000 test points; bias² includes the noise of y. With S sets, variance is estimated with S − 1 in its denominator, and
variance / S is taken from bias², so that neither depends on S. Sets are drawn anew (with replacement, the same for all M) for
intervals.
"""

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

import pluribus

from ...core.ensemble import Ensemble
from ...file_formats.schema import MOST_ENTRIES, NotNegative, Schema, Values
from ...methods.mimo import MIMO
from ...methods.single import Single
from ...reports.svg import MUTED, line_style, marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Precondition, Verdict, judge_claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = (1, 2, 3, 4, 5)
POINTS, TEST = 64, 3000
DRAWS = 1000
"""How often sets are drawn anew."""
TEST_SEED = 10**6
Numbers = Annotated[list[NotNegative], Field(min_length=1, max_length=MOST_ENTRIES)]


def list_cells(sets: int, steps: int) -> dict[str, Json]:
    return {f"M = {count}": {"seed": 0, "members": count, "sets": sets, "steps": steps, "lr": 3e-3} for count in MEMBERS}


class Measured(Schema):
    """The error and its parts; the same of every draw of sets; the variance of targets; the curves of the first set."""

    error: NotNegative
    bias: NotNegative
    variance: NotNegative
    bias_draws: Numbers
    variance_draws: Numbers
    target_variance: NotNegative
    member_spread: NotNegative
    """The variance between the members of one network, averaged over sets and test points."""
    grid: Values
    curves: Annotated[list[Values], Field(min_length=1, max_length=MOST_ENTRIES)]
    train_x: Values
    train_y: Values


def draw_points(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Points x `[count, 1]`, uniform from 0 to 0.5, and their targets."""
    generator = torch.Generator().manual_seed(seed)
    x = 0.5 * torch.rand(count, 1, generator=generator)
    noise = 0.02 * torch.randn(count, 1, generator=generator)
    return x, x + 0.3 * torch.sin(2 * math.pi * (x + noise)) + 0.3 * torch.sin(4 * math.pi * (x + noise)) + noise


def train_network(members: int, x: Tensor, y: Tensor, steps: int, lr: float, seed: int) -> Ensemble:
    """Train the perceptron 32-128 on standardised points, all of them in each step."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 1))
    spec = Single() if members == 1 else MIMO(members=members, input_repetition=0.0, init="fresh")
    ensemble = pluribus.ensemble(net, spec, task="regression").train()
    optimizer = torch.optim.Adam(ensemble.parameters(), lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1 / steps, steps)
    for _ in range(steps):
        loss = ensemble.loss(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return ensemble


def measure(options: Json, workspace: Workspace) -> Json:
    test_x, test_y = draw_points(TEST, TEST_SEED)
    grid = torch.linspace(0, 0.5, 101).unsqueeze(1)
    means, spreads, curves = [], [], []
    workspace.folder.mkdir(parents=True, exist_ok=True)
    for index in range(options["sets"]):
        place = workspace.folder / f"set-{index}.npz"
        x, y = draw_points(POINTS, index)
        if not place.is_file():  # each is trained once, however often the measurement is stopped
            workspace.report(f"set {index + 1}/{options['sets']}")
            scale = Standardization(x, y)
            trained = train_network(options["members"], scale.x(x), scale.y(y), options["steps"], options["lr"], index)
            rows = torch.cat([test_x, grid])
            answers = scale.restore(trained.predict(scale.x(rows)).members.squeeze(-1)).numpy()
            temporary = place.with_suffix(".part.npz")
            np.savez(temporary, answers=answers)
            temporary.replace(place)
        answers = np.load(place, allow_pickle=False)["answers"].astype(np.float64)
        means.append(answers[:, :TEST].mean(0))
        spreads.append(answers[:, :TEST].var(0, ddof=1).mean() if len(answers) > 1 else 0.0)
        curves.append(answers[:, TEST:])
    targets = test_y.squeeze(1).double().numpy()
    predictions = np.stack(means)
    draws = np.random.default_rng(0).integers(len(predictions), size=(DRAWS, len(predictions)))
    each = [split_error(predictions[draw], targets) for draw in draws]
    bias, variance = split_error(predictions, targets)
    first_x, first_y = draw_points(POINTS, 0)
    return {
        "error": bias + variance,
        "bias": bias,
        "variance": variance,
        "bias_draws": [max(0.0, pair[0]) for pair in each],
        "variance_draws": [pair[1] for pair in each],
        "target_variance": float(targets.var()),
        "member_spread": float(np.mean(spreads)),
        "grid": grid.flatten().tolist(),
        "curves": curves[0].tolist(),
        "train_x": first_x.flatten().tolist(),
        "train_y": first_y.flatten().tolist(),
    }


class Standardization:
    """Inputs and targets at mean 0 and variance 1, by the points of one training set."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.center, self.width = (x.mean(), y.mean()), (x.std(), y.std())

    def x(self, x: Tensor) -> Tensor:
        return (x - self.center[0]) / self.width[0]

    def y(self, y: Tensor) -> Tensor:
        return (y - self.center[1]) / self.width[1]

    def restore(self, y: Tensor) -> Tensor:
        return y * self.width[1] + self.center[1]


def split_error(predictions: np.ndarray, targets: np.ndarray) -> tuple[float, float]:
    """bias² and variance of predictions `[S, N]` of S training sets for N targets, without bias by S.

    >>> split_error(np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([0.0, 0.0]))
    (3.0, 2.0)
    """
    mean = predictions.mean(0)
    variance = float(predictions.var(0, ddof=1).mean())
    return float(((mean - targets) ** 2).mean()) - variance / len(predictions), variance


def tabulate(found: Found) -> list[Json]:
    return [
        {"members": name}
        | {key: 1e3 * cell[key] for key in ("bias", "variance", "error")}
        | {"spread": 1e3 * cell["member_spread"] if name != "M = 1" else None}
        for name, cell in found.items()
    ]


def find_interval(draws: np.ndarray) -> tuple[float, float]:
    """The middle 95 % of draws."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def compare_part(found: Found, key: str, count: int) -> tuple[float, float]:
    """The interval of the difference of `bias`, `variance` or `error` between M = count and M = 1, over the same sets."""

    def read(name: str) -> np.ndarray:
        cell = found[name]
        parts = ("bias", "variance") if key == "error" else (key,)
        return np.sum([cell[f"{part}_draws"] for part in parts], axis=0)

    return find_interval(read(f"M = {count}") - read("M = 1"))


def format_differences(found: Found, key: str) -> str:
    """The change of a part from M = 1, in thousandths, with intervals."""
    texts = []
    for count in MEMBERS[1:]:
        low, high = compare_part(found, key, count)
        change = found[f"M = {count}"][key] - found["M = 1"][key]
        texts.append(f"M = {count} {1e3 * change:+.2f} ({1e3 * low:+.2f} to {1e3 * high:+.2f})")
    return ", ".join(texts)


def judge(found: Found) -> list[Verdict]:
    one = found["M = 1"]
    fits = Precondition(
        "one network explains at least three quarters of the targets' variance",
        f"one network leaves {one['error'] / one['target_variance']:.0%} of it",
        one["error"] <= one["target_variance"] / 4,
    )
    lower = {count: compare_part(found, "variance", count)[1] < 0 for count in MEMBERS[1:]}
    higher = {count: compare_part(found, "bias", count)[0] > 0 for count in MEMBERS[1:]}
    better = {count: compare_part(found, "error", count)[1] < 0 for count in MEMBERS[1:]}
    best = min(MEMBERS[1:], key=lambda count: found[f"M = {count}"]["error"])
    rise = found[f"M = {best}"]["bias"] - one["bias"]
    fall = one["variance"] - found[f"M = {best}"]["variance"]
    three = found["M = 3"]
    verdicts = [
        judge_claim(
            "Variance falls as M grows.",
            "below that of M = 1 for every M from 2 to 5, the interval over training sets included; direction: for M = 3",
            f"in thousandths: {format_differences(found, 'variance')}",
            all(lower.values()),
            lower[3],
        ),
        judge_claim(
            "Bias rises slightly with M.",
            "bias² above that of M = 1 beyond the interval for M = 5, and at the M with the lowest error it rises by less "
            "than variance falls; direction: the first",
            f"in thousandths: {format_differences(found, 'bias')}",
            higher[5] and rise < fall,
            higher[5],
        ),
        judge_claim(
            "The error is lower than that of one network.",
            "below that of M = 1 beyond the interval for at least one M; direction: lower for at least one M",
            f"in thousandths: {format_differences(found, 'error')}",
            any(better.values()),
            found[f"M = {best}"]["error"] < one["error"],
        ),
        judge_claim(
            "The three members of M = 3 are diverse.",
            "the variance between members is at least a tenth of the variance over training sets; direction: at least a "
            "hundredth",
            f"in thousandths: {1e3 * three['member_spread']:.2f} between members, {1e3 * three['variance']:.2f} over sets",
            three["member_spread"] >= 0.1 * three["variance"],
            three["member_spread"] >= 0.01 * three["variance"],
        ),
    ]
    return [fits.judge(verdict) for verdict in verdicts]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(11, 3.6)
    panels = figure.subplots(1, 4)
    cells = {name: cell["found"] for name, cell in result["cells"].items()}
    three = cells["M = 3"]
    panels[0].scatter(three["train_x"], three["train_y"], s=8, color=MUTED, label="training points")
    for index, curve in enumerate(three["curves"]):
        panels[0].plot(three["grid"], curve, label=f"member {index + 1}", **line_style(index))
    panels[0].set_title("Members of M = 3", loc="left", fontsize=11)
    panels[0].set_xlabel("x")
    panels[0].legend(frameon=False, fontsize=7)
    for axes, (key, title) in zip(panels[1:], (("bias", "bias²"), ("variance", "variance"), ("error", "error")), strict=True):
        values = [1e3 * cell[key] for cell in cells.values()]
        parts = ("bias", "variance") if key == "error" else (key,)
        draws = [1e3 * np.sum([cell[f"{part}_draws"] for part in parts], axis=0) for cell in cells.values()]
        bounds = np.array([find_interval(each) for each in draws]).T
        errors = np.abs(bounds - np.array(values))
        axes.errorbar(list(MEMBERS), values, yerr=errors, capsize=3, **marker_style(0))
        axes.set_title(f"{title}, thousandths", loc="left", fontsize=11)
        axes.set_xlabel("M")
        axes.set_xticks(list(MEMBERS))
    for axes in panels:
        style_axes(axes)


RECIPE = Recipe(
    id="mimo/figure-2",
    title="Bias and variance of a regression",
    question="Does MIMO trade a little bias for less variance?",
    source="figure 2, section 2.1",
    scales={
        "smoke": Scale("2 training sets, 5 steps.", list_cells(2, 5)),
        "cpu": Scale(
            "The published setting: 64 training points, 3,000 test points, a perceptron 32-128, M = 1 to 5; 64 training sets, "
            "2,000 steps of Adam on all points, from 3e-3 linearly to 0.",
            list_cells(64, 2000),
        ),
        "paper": Scale("64 training points, 3,000 test points, a perceptron 32-128, M = 1 to 5.", list_cells(64, 2000)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "members": "members",
        "bias": "bias², thousandths",
        "variance": "variance, thousandths",
        "error": "error, thousandths",
        "spread": "variance between members, thousandths",
    },
    draw=draw,
    departures=[
        "The paper says neither the range of x, nor the optimiser, nor the number of training sets of figure-2. Ours: x from 0 "
        "to 0.5, as in Blundell et al., 2015; Adam on all 64 points, standardised, for 2,000 steps."
    ],
)
