"""variance/kappa: which weights need to be random, by the curvature of the loss in units of their variance.

Scale cpu takes about 36 minutes of one core beside table 1: dense layers 4 × 7,200 steps of 0.025 s, phases and κ after each
epoch, and 480 draws for 10,000 rows of each network.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any

import lightning as L
import numpy as np
from pydantic import Field
from torch import Tensor

from ...analysis.curvature import kappa
from ...analysis.pruning import prune
from ...core.ensemble import Ensemble
from ...data.dataset import Data
from ...file_formats.schema import MOST_ENTRIES, Count, NotNegative, Schema, Share, Size
from ...reports.svg import MUTED, line_style, marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, find_lossless_share, judge_claim
from .configurations import CONTROL, DENSE_ABOUT, DENSE_DEPARTURE, configure_dropout_lenet, configure_variational_lenet
from .phase_figures import TrackedPhases, format_transition, require_means_first, summarize_phases
from .preconditions import judge_under, require_base, require_log_alpha, require_same_end, require_seeds
from .seeds import estimate, format_share, group_seeds, list_seeds
from .trained_cells import build_cell, train_cell
from .trainings import RowTracker, measure_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLD = 1.5
"""The paper's log10 κ₀."""
BINS = np.linspace(-12, 6, 73)
SHARES = (0.0, 0.5, 0.8, 0.9, 0.94, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.998)
FASTER = "log α twice as fast"
ROWS = {"smoke": 40, "cpu": 10_000, "paper": 60_000}


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"curvature{control}, seed {seed}": build_cell(
            configure_variational_lenet(scale, seed, activation="softplus", faster=faster),
            configure_dropout_lenet(scale, seed),
            shares=list(SHARES),
            rows=ROWS[scale],
        )
        for control, faster in (("", 1.0), (f", {FASTER}", CONTROL))
        for seed in list_seeds(scale, bool(control))
    }


class CurvatureTracker(RowTracker):
    """Records after each epoch the histogram of log10 |κ|, and how many weights are above the threshold."""

    def __init__(self, data: Data, rows: int) -> None:
        self.x, self.y = data.preparation(data.train.x[:rows]), data.train.y[:rows]
        self.rows: list[Json] = []

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module.ensemble, Ensemble)
        found = measure_curvature(module.ensemble, self.x, self.y)
        logs = found.abs().clamp_min(1e-25).log10()
        counts, _ = np.histogram(logs.clamp(BINS[0], BINS[-1]).numpy(), BINS)
        above = int((logs > THRESHOLD).sum())
        self.rows.append(
            {"epoch": trainer.current_epoch + 1, "above": above, "negative": int((found < 0).sum()), "counts": counts.tolist()}
        )

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])


def measure_curvature(ensemble: Ensemble, x: Tensor, y: Tensor) -> Tensor:
    """Return κ of every weight of the noisy layer, `[weights]`."""
    return kappa(ensemble, zip(x.split(1000), y.split(1000), strict=True))["dense1"].flatten()


class TrackedCurvature(Schema):
    """The weights after an epoch: how many have κ above the histogram, below zero, and in each of its bins."""

    epoch: Count
    above: Count
    negative: Count
    counts: Annotated[list[Count], Field(min_length=1, max_length=MOST_ENTRIES)]


class ReplacedRow(Schema):
    """The share of weights that was replaced, the largest |κ| of one, and the accuracies that are left."""

    share: Share
    threshold: NotNegative
    mean: Share
    zero: Share


class Measured(TrackedPhases):
    """κ after each epoch, a row for each share of replaced weights, the numbers of weights and test rows, and the phases."""

    watched: list[TrackedCurvature]
    table: Annotated[list[ReplacedRow], Field(min_length=1, max_length=MOST_ENTRIES)]
    weights: Size
    rows: Size


def measure(options: Json, workspace: Workspace) -> Json:
    rows = options["rows"]
    done, trained = train_cell(options, workspace, lambda data: CurvatureTracker(data, rows))
    workspace.report("replacing")
    x, y = done.training_rows(rows)
    found = kappa(done.ensemble, zip(x.split(1000), y.split(1000), strict=True))
    scores = {name: values.abs() for name, values in found.items()}
    ordered = scores["dense1"].flatten().sort().values
    table = []
    for share in options["shares"]:
        row = {"share": share, "threshold": ordered[int(share * (len(ordered) - 1))].item()}
        for to in ("mean", "zero"):
            changed = prune(done.ensemble, scores, share=share, to=to)
            row[to] = measure_accuracy(changed, done.x, done.y, 20, "average")
        table.append(row)
    own = trained | {"watched": done.watched, "table": table, "weights": len(ordered), "rows": len(done.y)}
    return own | summarize_phases(done)


def tabulate(found: Found) -> list[Json]:
    tables = [cell["table"] for cell in group_seeds(found).get("curvature", {}).values()]
    return [
        {key: factor * float(np.mean([row[key] for row in rows])) for key, factor in FACTORS.items()}
        for rows in zip(*tables, strict=True)
    ]


FACTORS = {"share": 100.0, "threshold": 1.0, "mean": 100.0, "zero": 100.0}


def find_replaceable_share(cell: Json, to: str) -> float:
    """Return the largest share of weights that can be replaced by their "mean" or by "zero" at no loss."""
    return find_lossless_share([(row["share"], row[to]) for row in cell["table"]], cell["rows"])


def find_start(cell: Json) -> int | None:
    """Return the first epoch after which a weight has κ above the threshold, or None."""
    return next((row["epoch"] for row in cell["watched"] if row["above"] > 0), None)


def is_start_near(cell: Json, slack: int) -> bool:
    """Whether the first weight above the threshold and the beginning of the transition are at most `slack` epochs apart."""
    started, moved = find_start(cell), cell["transition"]
    return moved is not None and started is not None and abs(started - moved[0]) <= slack


def describe_start(cell: Json) -> str:
    """Return the evidence on the beginning of the transition."""
    most = max(row["above"] for row in cell["watched"])
    return (
        f"first above κ₀ after epoch {find_start(cell)}; transition {format_transition(cell)}; most above κ₀: {most:,} of "
        f"{cell['weights']:,} weights"
    )


def judge(found: Found) -> list[Verdict]:
    rows = group_seeds(found)
    cells = list(rows["curvature"].values())
    zero, mean = ([find_replaceable_share(cell, to) for cell in cells] for to in ("zero", "mean"))
    medians = [[histogram_median(row["counts"]) for row in cell["watched"]] for cell in cells]
    rises = [max(median) - median[0] for median in medians]
    zeroed = judge_claim(
        "98 % of the weights can be zeroed by small κ at no loss.",
        "of every seed 97 % or more, within the interval of the full network's accuracy; direction: 50 % or more",
        f"{format_share(estimate(zero), 1)} zeroed, {format_share(estimate(mean), 1)} replaced by their means",
        min(zero) >= 0.97,
        min(zero) >= 0.5,
    )
    phases = [
        judge_claim(
            "The transition starts as soon as weights with a large κ emerge (log10 κ₀ = 1.5).",
            "of every seed the first epoch with a weight above κ₀ is within 3 epochs of the beginning of the transition; "
            "direction: not after its end",
            "; ".join(describe_start(cell) for cell in cells),
            all(is_start_near(cell, 3) for cell in cells),
            all(cell["transition"] and (find_start(cell) or math.inf) <= cell["transition"][1] for cell in cells),
        ),
        judge_claim(
            "In the transition the histogram of κ shifts to higher values.",
            "of every seed the median of log10 |κ| rises by 1 or more from the first epoch to its highest; direction: it rises",
            "; ".join(f"from {each[0]:.1f} to {max(each):.1f}, at the end {each[-1]:.1f}" for each in medians),
            min(rises) >= 1,
            min(rises) > 0,
        ),
    ]
    common = [
        require_seeds({f"curvature, seed {seed}": cell for seed, cell in rows["curvature"].items()}),
        require_base(found, 0.994),
        require_log_alpha({"": cells}),
        require_same_end({"": (rows["curvature"], rows.get(f"curvature, {FASTER}", {}))}),
    ]
    return [*judge_under([zeroed], *common), *judge_under(phases, *common, require_means_first({"": cells}))]


def histogram_median(counts: list[int]) -> float:
    """Return the lower edge of the bin that holds the median of a histogram over BINS."""
    total = np.cumsum(counts)
    return float(BINS[int(np.searchsorted(total, total[-1] / 2))])


def draw(figure: "Figure", result: Json) -> None:
    cell = next(iter(result["cells"].values()))["found"]
    figure.set_size_inches(12, 4)
    first, second, third = figure.subplots(1, 3)
    watched, moved = cell["watched"], cell["transition"] or [1, len(cell["watched"])]
    for index, epoch in enumerate(dict.fromkeys((max(moved[0], 1), max((moved[0] + moved[1]) // 2, 1), watched[-1]["epoch"]))):
        counts = next(row["counts"] for row in watched if row["epoch"] == epoch)
        first.stairs(counts, BINS, label=f"after epoch {epoch}", **line_style(index))
    first.axvline(THRESHOLD, color=MUTED, linewidth=1, linestyle=":")
    first.set(xlabel="log10 |κ| (dotted: the paper's κ₀)", ylabel="weights")
    first.set_title("Curvature in units of variance", loc="left", fontsize=11)
    epochs = [row["epoch"] for row in watched]
    second.plot(epochs, [100 * row["mean"] for row in cell["phases"][1:]], **line_style(0))
    second.set(xlabel="epoch", ylabel="accuracy of the mean weights, % (solid)")
    twin = second.twinx()
    twin.plot(epochs, [row["above"] for row in watched], **line_style(1))
    twin.set_ylabel("weights with κ above κ₀ (dashed)")
    twin.spines[["top"]].set_visible(False)
    second.set_title("The mean, and weights with a large κ", loc="left", fontsize=11)
    shares = [100 * row["share"] for row in cell["table"]]
    for index, (to, label) in enumerate((("mean", "by their mean"), ("zero", "by zero"))):
        third.plot(shares, [100 * row[to] for row in cell["table"]], label=label, **marker_style(index))
    third.set(xlabel="weights with the smallest |κ| replaced, %", ylabel="test accuracy of 20 draws, %")
    third.set_title("Replacing weights", loc="left", fontsize=11)
    for axes in (first, second, third):
        style_axes(axes)
    for axes in (first, third):
        axes.legend(frameon=False, fontsize=9)


def describe_setting(scale: str) -> str:
    """Return the part of a scale's description that all scales share."""
    return f"LeNet-5 with softplus after the first dense layer, which is variational; κ over {ROWS[scale]:,} training rows;"


RECIPE = Recipe(
    id="variance/kappa",
    title="The curvature criterion",
    question="Which random weights can be replaced by their means?",
    source="the earlier version, sections 5 and 6.4, figures 3 to 5",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale(
            f"{describe_setting('cpu')} {DENSE_ABOUT} log α is learnt 4.2 times faster than the weights, and twice as "
            "fast as that "
            "in controls. The figure shows the first seed.",
            list_cells("cpu"),
            ("mnist",),
        ),
        "paper": Scale(f"{describe_setting('paper')} 200 epochs.", list_cells("paper"), ("mnist",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"share": "replaced, %", "threshold": "|κ| below", "mean": "by their mean, %", "zero": "by zero, %"},
    draw=draw,
    departures=[
        DENSE_DEPARTURE,
        "κ is of the summed negative log-likelihood; it has a sign, and histograms are of |κ|.",
    ],
)
