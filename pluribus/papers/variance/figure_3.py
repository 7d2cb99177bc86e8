"""variance/figure-3: the phase transition, when what a network knows moves from the means of its weights to their variances."""

from typing import TYPE_CHECKING

from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim
from . import phase_figures
from .configurations import TRIALS, configure_tracked_lenet, configure_variational_vgg
from .trainings import Training, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def list_cells(scale: str) -> dict[str, Json]:
    if scale == "paper":
        return {"VGG-like": {"seed": 0, "training": configure_variational_vgg(scale).to_json()}}
    return {"LeNet-5": {"seed": 0, "training": configure_tracked_lenet(scale).to_json()}}


def measure(options: Json, workspace: Workspace) -> Json:
    return phase_figures.summarize_phases(train_once(Training.from_json(options["training"]), workspace))


def tabulate(found: Found) -> list[Json]:
    return [{"network": name} | phase_figures.tabulate_phases(cell) for name, cell in found.items()]


def judge(found: Found) -> list[Verdict]:
    cell = next(iter(found.values()))
    first, last = cell["phases"][1], cell["phases"][-1]
    return [
        judge_claim(
            "Around some epoch mean propagation falls from the accuracy of the average to chance.",
            "within 2 points of the average once, then within 5 points of the most frequent class, and there to the end; "
            "direction: below half of the average at the end",
            phase_figures.describe_phases(cell),
            cell["transition"] is not None,
            last["mean"] < last["average"] / 2,
        ),
        judge_claim(
            "The average does not notice.",
            "from when the mean last answered within 2 points of it, never more than 2 points below its best before; "
            "direction: at the end at least nine tenths of its best",
            phase_figures.describe_phases(cell),
            phase_figures.is_average_kept(cell),
            last["average"] >= 0.9 * max(row["average"] for row in cell["phases"]),
        ),
        judge_claim(
            "Zero-mean draws answer at chance first, and as well as the average in the end.",
            "20 of them: after the first epoch at most half of the average, at the end within 1 point of it; direction: "
            "within 5 points",
            f"{format_percent(first['zero-mean average'], 1)} after the first epoch; {phase_figures.describe_phases(cell)}",
            first["zero-mean average"] <= first["average"] / 2 and last["zero-mean average"] >= last["average"] - 0.01,
            last["zero-mean average"] >= last["average"] - 0.05,
        ),
    ]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(9, 4)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    ((name, cell),) = ((name, cell["found"]) for name, cell in result["cells"].items())
    phase_figures.draw_accuracies(left, cell, label=True)
    phase_figures.draw_log_alphas(right, cell)
    left.set_title(f"{name}: accuracy of each kind of answer", loc="left", fontsize=11)
    right.set_title("Noise of the layer", loc="left", fontsize=11)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)


RECIPE = Recipe(
    id="variance/figure-3",
    title="The phase transition",
    question="When does the answer move from the means of the weights to their variances?",
    source="figure 3, section 4.3",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale(
            "LeNet-5 with the first dense layer variational, in place of the VGG-like network (figure-8 has that), on 10,000 "
            "rows of MNIST, 40 epochs; log α learnt 3000 times faster than the weights, KL weighed in over 8 epochs; "
            "accuracies on 2,000 test rows.",
            list_cells("cpu"),
            ("mnist",),
        ),
        "paper": Scale("The VGG-like network on CIFAR-10.", list_cells("paper"), ("cifar10",)),
    },
    measure=measure,
    measured=phase_figures.TrackedPhases,
    tabulate=tabulate,
    judge=judge,
    columns={"network": "network"} | phase_figures.COLUMNS,
    draw=draw,
    departures=[TRIALS],
)
