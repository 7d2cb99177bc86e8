"""variance/figure-8: the phase transition under three priors."""

from typing import TYPE_CHECKING

from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from . import phase_figures
from .configurations import NARROW, TRIALS, configure_variational_vgg
from .trainings import Training, train_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIORS = {"log-uniform": "log-uniform", "student-t": "Student's t", "ard": "ARD"}


def list_cells(scale: str) -> dict[str, Json]:
    return {prior: {"seed": 0, "training": configure_variational_vgg(scale, prior=prior).to_json()} for prior in PRIORS}


def measure(options: Json, workspace: Workspace) -> Json:
    return phase_figures.summarize_phases(train_once(Training.from_json(options["training"]), workspace))


def tabulate(found: Found) -> list[Json]:
    return [{"prior": PRIORS[prior]} | phase_figures.tabulate_phases(cell) for prior, cell in found.items()]


def judge(found: Found) -> list[Verdict]:
    verdicts = []
    for prior, cell in found.items():
        last = cell["phases"][-1]
        verdicts.append(
            judge_claim(
                f"{PRIORS[prior]}: the network becomes a variance network.",
                "a transition, and zero-mean draws averaged within 2 points of the average at the end; direction: the mean "
                "below half of the average",
                phase_figures.describe_phases(cell),
                cell["transition"] is not None and last["zero-mean average"] >= last["average"] - 0.02,
                last["mean"] < last["average"] / 2,
            )
        )
    ends = {prior: cell["transition"][1] if cell["transition"] else None for prior, cell in found.items()}
    slow, others = ends["student-t"], [ends["log-uniform"], ends["ard"]]
    late = all(end is not None and (slow is None or end < slow) for end in others)
    verdicts.append(
        judge_claim(
            "It takes longest under Student's prior, whose KL is estimated from one draw.",
            "its transition ends later than both others",
            ", ".join(f"{PRIORS[prior]}: {'none' if end is None else f'epoch {end}'}" for prior, end in ends.items()),
            late,
        )
    )
    return verdicts


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(11, 4)
    panels = figure.subplots(1, len(PRIORS), sharey=True)
    for index, (axes, (prior, title)) in enumerate(zip(panels, PRIORS.items(), strict=True)):
        phase_figures.draw_accuracies(axes, result["cells"][prior]["found"], label=index == 0)
        axes.set_title(title, loc="left", fontsize=11)
        if index:
            axes.set_ylabel("")
    figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=9)


RECIPE = Recipe(
    id="variance/figure-8",
    title="The phase transition under three priors",
    question="Does it depend on the prior?",
    source="figure 8, appendix B",
    scales={
        "smoke": Scale("100 digits in 32×32, a narrow VGG-like network, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            f"{NARROW[0].upper()}{NARROW[1:]} Accuracies on 2,000 test rows.",
            list_cells("cpu"),
            ("cifar10",),
        ),
        "paper": Scale("The VGG-like network on CIFAR-10, 550 epochs.", list_cells("paper"), ("cifar10",)),
    },
    measure=measure,
    measured=phase_figures.TrackedPhases,
    tabulate=tabulate,
    judge=judge,
    columns={"prior": "prior"} | phase_figures.COLUMNS,
    draw=draw,
    departures=[TRIALS],
)
