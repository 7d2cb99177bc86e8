"""variance/figure-8: the phase transition under three priors.

Scale cpu takes about 40 minutes of one core beside table 2: 8 × 1,170 steps of 0.175 s, and the phases after each epoch.
"""

from typing import TYPE_CHECKING

from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from . import phase_figures
from .configurations import CONTROL, FAST_DEPARTURE, configure_dropout_cifar, configure_variational_cifar
from .preconditions import judge_under, require_accuracy, require_log_alpha, require_same_end, require_seeds
from .seeds import estimate, group_seeds, list_seeds
from .table_2 import LEAST_BASE
from .trained_cells import build_cell, train_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIORS = {"log-uniform": "log-uniform", "student-t": "Student's t", "ard": "ARD"}
FASTER = "log α twice as fast"


def list_cells(scale: str) -> dict[str, Json]:
    rows = {prior: (prior, 1.0) for prior in PRIORS} | {f"{prior}, {FASTER}": (prior, CONTROL) for prior in PRIORS}
    return {
        f"{row}, seed {seed}": build_cell(
            configure_variational_cifar(scale, seed, prior, faster), configure_dropout_cifar(scale, seed)
        )
        for row, (prior, faster) in rows.items()
        for seed in list_seeds(scale, row not in PRIORS)
    }


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    return trained | phase_figures.summarize_phases(done)


def tabulate(found: Found) -> list[Json]:
    return [{"prior": name_row(row)} | phase_figures.tabulate_phases(cells) for row, cells in group_seeds(found).items()]


def name_row(row: str) -> str:
    """
    >>> name_row("student-t, log α twice as fast")
    "Student's t, log α twice as fast"
    """
    prior, comma, rest = row.partition(", ")
    return PRIORS[prior] + comma + rest


def judge(found: Found) -> list[Verdict]:
    rows = group_seeds(found)
    own = {prior: rows[prior] for prior in PRIORS}
    cells = {prior: list(own[prior].values()) for prior in PRIORS}
    seeds = require_seeds({name: cell for name, cell in found.items() if FASTER not in name})
    regime = require_accuracy(
        "networks with dropout are (the paper's 93.1 %)",
        LEAST_BASE,
        {PRIORS[prior]: measure_base(cells[prior]) for prior in PRIORS},
    )
    verdicts: list[Verdict] = []
    for prior in PRIORS:
        ends = [cell["phases"][-1] for cell in cells[prior]]
        became = judge_claim(
            f"{PRIORS[prior]}: the network becomes a variance network.",
            "of every seed a transition, and zero-mean draws averaged within 2 points of the average at the end; "
            "direction: the "
            "mean below half of the average",
            phase_figures.describe_seeds(own[prior]),
            all(cell["transition"] is not None for cell in cells[prior])
            and all(last["zero-mean average"] >= last["average"] - 0.02 for last in ends),
            all(last["mean"] < last["average"] / 2 for last in ends),
        )
        control = rows.get(f"{prior}, {FASTER}", {})
        verdicts += judge_under(
            [became],
            seeds,
            regime,
            phase_figures.require_means_first({"": cells[prior]}),
            require_log_alpha({"": cells[prior]}),
            require_same_end({"": (own[prior], control)}),
        )
    last = {prior: [cell["transition"][1] if cell["transition"] else None for cell in cells[prior]] for prior in PRIORS}
    leads = [compare_ends(last["student-t"], last[other]) for other in ("log-uniform", "ard")]
    late = judge_claim(
        "It takes longest under Student's prior, whose KL is estimated from one draw.",
        "its transition ends later than that of the same seed under both others, in every seed; a transition that does "
        "not come is "
        "later than one that does; direction: in more than half of the seeds",
        ", ".join(
            f"{PRIORS[prior]}: {', '.join('none' if end is None else f'epoch {end}' for end in last[prior])}"
            for prior in PRIORS
        ),
        all(all(each) for each in leads),
        all(sum(each) > len(each) / 2 for each in leads),
    )
    return verdicts + judge_under(
        [late], seeds, regime, phase_figures.require_means_first({PRIORS[prior]: cells[prior] for prior in PRIORS})
    )


def measure_base(cells: list[Json]) -> float | None:
    """Return the mean accuracy of the networks with dropout, or None if it was not measured."""
    values = [cell["base"] for cell in cells if cell.get("base") is not None]
    return estimate(values).value if len(values) == len(cells) else None


def compare_ends(slow: list[int | None], fast: list[int | None]) -> list[bool]:
    """Whether the transition of the first ends later than that of the second, by seed.

    >>> compare_ends([8, None, 3, None], [5, 5, 4, None])
    [True, True, False, False]
    """
    return [other is not None and (own is None or own > other) for own, other in zip(slow, fast, strict=True)]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(11, 4)
    panels = figure.subplots(1, len(PRIORS), sharey=True)
    for index, (axes, (prior, title)) in enumerate(zip(panels, PRIORS.items(), strict=True)):
        cell = next(cell["found"] for name, cell in result["cells"].items() if name.startswith(prior))
        phase_figures.draw_accuracies(axes, cell, label=index == 0)
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
        "smoke": Scale("100 digits in 32×32, a narrow fast network, 1 epoch.", list_cells("smoke")),
        "cpu": Scale(
            "The fast network on all of CIFAR-10, 8 epochs of the recipe fast with dropout, and 6 of Adam from there with "
            "its last "
            "three convolutions variational; log α is learnt as much faster than the weights as lets it move as far as in the "
            "paper's steps, and twice as fast as that in controls; three seeds. Accuracies on 2,000 test rows. The figure "
            "shows "
            "the first seed.",
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
    departures=[FAST_DEPARTURE],
)
