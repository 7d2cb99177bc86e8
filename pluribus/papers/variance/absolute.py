"""variance/absolute: a zero-mean dense layer followed by the absolute value.

Scale cpu takes about 7 minutes of one core beside table 1: dense layers 3 × 7,200 steps of 0.015 s.
"""

from ...file_formats.schema import Share, Size
from ...methods.variance import Variance
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim, skip_claim
from .configurations import (
    DENSE_ABOUT,
    DENSE_DEPARTURE,
    configure_cifar,
    configure_dropout_cifar,
    configure_dropout_lenet,
    configure_zero_mean_lenet,
)
from .preconditions import judge_under, require_base, require_bound, require_seeds
from .seeds import SEEDS, average, compare, estimate, format_points, format_share, group_seeds, tabulate_share, take
from .trained_cells import TrainedCell, build_cell, train_cell
from .trainings import measure_accuracy

VGG_DENSE = "3"
"""The first dense layer of the VGG-like network."""
ABSOLUTE, RELU, DEEP = "LeNet-5, MNIST, |·|", "LeNet-5, MNIST, ReLU", "VGG-like, CIFAR-10, |·|"


def list_cells(scale: str, cifar: bool = False) -> dict[str, Json]:
    found = {
        f"{row}, seed {seed}": build_cell(
            configure_zero_mean_lenet(scale, seed, activation=activation), configure_dropout_lenet(scale, seed)
        )
        for row, activation in ((ABSOLUTE, "absolute"), (RELU, "relu"))
        for seed in SEEDS[scale]
    }
    for seed in SEEDS[scale] if cifar else ():
        deep = configure_cifar(scale, Variance(include=VGG_DENSE), seed, dense_activation="absolute")
        found[f"{DEEP}, seed {seed}"] = build_cell(deep, configure_dropout_cifar(scale, seed))
    return found


class Measured(TrainedCell):
    """Accuracies of one draw and of twenty, and the number of test rows."""

    one: Share
    many: Share
    rows: Size


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    one, many = (measure_accuracy(done.ensemble, done.x, done.y, samples) for samples in (1, 20))
    return trained | {"one": one, "many": many, "rows": len(done.y)}


def tabulate(found: Found) -> list[Json]:
    return [{"network": row} | tabulate_share(cells, ("one", "many")) for row, cells in group_seeds(found).items()]


def judge(found: Found) -> list[Verdict]:
    rows = group_seeds(found)
    absolute, relu = rows[ABSOLUTE], rows[RELU]
    reached, gain = average(absolute, "many"), compare(absolute, relu, "one")
    verdicts = [
        judge_claim(
            "LeNet-5 reaches 99.2 % averaged.",
            "at least 99.0 %, mean over seeds; direction: at least 98 %",
            format_share(estimate(take(absolute, "many"))),
            reached >= 0.99,
            reached >= 0.98,
        ),
        judge_claim(
            "The absolute value lessens the noise: a ReLU would also drop half of the neurons at random.",
            "one draw is better than with a ReLU, beyond the 95 % interval of the difference, paired by seed; direction: "
            "better",
            f"one draw: {format_share(estimate(take(absolute, 'one')))} against {format_share(estimate(take(relu, 'one')))}, "
            f"difference {format_points(gain)}",
            gain.low > 0,
            gain.value > 0,
        ),
    ]
    lenet = {name: cell for name, cell in found.items() if not name.startswith(DEEP)}
    bounds = require_bound({name: list(rows[name].values()) for name in (ABSOLUTE, RELU)})
    verdicts = judge_under(verdicts, require_seeds(lenet), require_base(lenet, 0.994), bounds)
    claim = "The VGG-like network reaches 92.9 % averaged on CIFAR-10."
    if DEEP not in rows:
        return [*verdicts, skip_claim(claim, "only at scale paper")]
    own = {name: cell for name, cell in found.items() if name.startswith(DEEP)}
    many = average(rows[DEEP], "many")
    deep = judge_claim(
        claim,
        "within 1 point, mean over seeds; direction: at least 90 %",
        format_percent(many),
        abs(many - 0.929) <= 0.01,
        many >= 0.9,
    )
    return [*verdicts, *judge_under([deep], require_seeds(own), require_base(own, 0.931))]


RECIPE = Recipe(
    id="variance/absolute",
    title="Zero-mean layer and absolute value",
    question="Is the absolute value a better activation for a zero-mean layer than ReLU?",
    source="the earlier version, appendix D",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale(f"The first dense layer a variance layer: {DENSE_ABOUT}", list_cells("cpu"), ("mnist",)),
        "paper": Scale(
            "The zero-mean LeNet-5 on MNIST, 200 epochs, and the VGG-like network on CIFAR-10, 550.",
            list_cells("paper", True),
            ("mnist", "cifar10"),
        ),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"network": "network", "one": "one draw, %", "one_margin": "±", "many": "20 draws, %", "many_margin": "±"},
    published=[{"network": ABSOLUTE, "many": 99.2}, {"network": DEEP, "many": 92.9}],
    departures=[DENSE_DEPARTURE],
)
