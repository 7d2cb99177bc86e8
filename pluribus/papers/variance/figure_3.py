"""variance/figure-3: the phase transition, when what a network knows moves from the means of its weights to their variances.

Scale cpu trains nothing beside table 1.
"""

from typing import TYPE_CHECKING

from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim
from . import phase_figures
from .configurations import (
    CONTROL,
    DENSE_ABOUT,
    DENSE_DEPARTURE,
    configure_dropout_cifar,
    configure_dropout_lenet,
    configure_variational_cifar,
    configure_variational_lenet,
)
from .preconditions import judge_under, require_base, require_log_alpha, require_same_end, require_seeds
from .seeds import group_seeds, list_seeds
from .trained_cells import build_cell, train_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FASTER = "log α twice as fast"


def list_cells(scale: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for control, faster in (("", 1.0), (f", {FASTER}", CONTROL)):
        for seed in list_seeds(scale, bool(control)):
            if scale == "paper":
                training = configure_variational_cifar(scale, seed, faster=faster)
                found[f"VGG-like{control}, seed {seed}"] = build_cell(training, configure_dropout_cifar(scale, seed))
            else:
                training = configure_variational_lenet(scale, seed, faster=faster)
                found[f"LeNet-5{control}, seed {seed}"] = build_cell(training, configure_dropout_lenet(scale, seed))
    return found


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    return trained | phase_figures.summarize_phases(done)


def tabulate(found: Found) -> list[Json]:
    return [{"network": row} | phase_figures.tabulate_phases(cells) for row, cells in group_seeds(found).items()]


def judge(found: Found) -> list[Verdict]:
    rows = group_seeds(found)
    name = next(iter(rows))
    own, control = rows[name], rows.get(f"{name}, {FASTER}", {})
    cells = list(own.values())
    ends, begins = [cell["phases"][-1] for cell in cells], [cell["phases"][1] for cell in cells]
    pairs = list(zip(begins, ends, strict=True))
    verdicts = [
        judge_claim(
            "Around some epoch mean propagation falls from the accuracy of the average to chance.",
            "of every seed within 2 points of the average once, then within 5 points of the most frequent class, and "
            "there to the "
            "end; direction: below half of the average at the end",
            phase_figures.describe_seeds(own),
            all(cell["transition"] is not None for cell in cells),
            all(last["mean"] < last["average"] / 2 for last in ends),
        ),
        judge_claim(
            "The average does not notice.",
            "of every seed, from when the mean last answered within 2 points of it, never more than 2 points below its best "
            "before; direction: at the end at least nine tenths of its best",
            phase_figures.describe_seeds(own),
            all(phase_figures.is_average_kept(cell) for cell in cells),
            all(cell["phases"][-1]["average"] >= 0.9 * max(row["average"] for row in cell["phases"]) for cell in cells),
        ),
        judge_claim(
            "Zero-mean draws answer at chance first, and as well as the average in the end.",
            "20 of them, of every seed: after the first epoch at most half of the average, at the end within 1 point of it; "
            "direction: within 5 points",
            f"after the first epoch {', '.join(format_percent(first['zero-mean average'], 1) for first in begins)}; "
            f"{phase_figures.describe_seeds(own)}",
            all(
                first["zero-mean average"] <= first["average"] / 2 and last["zero-mean average"] >= last["average"] - 0.01
                for first, last in pairs
            ),
            all(last["zero-mean average"] >= last["average"] - 0.05 for last in ends),
        ),
    ]
    paper = 0.931 if name.startswith("VGG") else 0.994
    return judge_under(
        verdicts,
        require_seeds({f"{name}, seed {seed}": cell for seed, cell in own.items()}),
        require_base(found, paper),
        phase_figures.require_means_first({"": cells}),
        require_log_alpha({"": cells}),
        require_same_end({"": (own, control)}),
    )


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(9, 4)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    name, cell = next((name, cell["found"]) for name, cell in result["cells"].items())
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
            "LeNet-5 with the first dense layer variational, in place of the VGG-like network (figure-8 has CIFAR-10), the row "
            f"layer of table-1: {DENSE_ABOUT} log α is learnt 4.2 times faster than the weights, and twice as fast as that in "
            "controls; accuracies on 2,000 test rows. The figure shows the first seed.",
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
    departures=[DENSE_DEPARTURE],
)
