"""variance/table-3: tanh and no biases, so that a variance layer's response has mean zero even after its activation.

Scale cpu takes about 65 minutes of one core: 12 × 1,440 steps of 0.13 to 0.20 s, and dense layers 6 × 7,200 steps of 0.015 s.
"""

from dataclasses import replace

from ...file_formats.schema import Share
from ...methods.single import Single
from ...methods.variance import Variance
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from .configurations import BOUNDED, DENSE_DEPARTURE, configure_dense, configure_dropout_lenet, configure_lenet
from .preconditions import judge_under, require_accuracy, require_base, require_bound, require_seeds
from .seeds import SEEDS, average, compare, estimate, format_points, format_share, group_seeds, tabulate_share, take
from .trained_cells import TrainedCell, build_cell, train_cell
from .trainings import Training, measure_accuracy

SETTINGS: dict[str, tuple[str, ...]] = {"none": (), "conv2": ("conv2",), "dense1": ("dense1",), "both": ("conv2", "dense1")}
SHIFTED = "with BatchNorm"
"""The shift of a BatchNorm acts as a bias."""
CONV2, DENSE1, BOTH = "conv2", f"dense1, {SHIFTED}", f"both, {SHIFTED}"
LEAST_PLAIN = 0.99
"""The accuracy of the tanh network without variance layers, 99.4 % in the paper, from which its others can be judged."""


def configure_training(scale: str, layers: tuple[str, ...], shifted: bool, seed: int) -> Training:
    """Return the training of the tanh network with these variance layers; BatchNorm follows every hidden layer if `shifted`."""
    own: Json = {"bias": False, "activation": "tanh"}
    spec = Variance(include=layers) if layers else Single()
    if layers == ("dense1",) and scale != "paper":
        features = configure_lenet(scale, Single(), seed, norm="none", **own)
        return configure_dense(scale, spec, seed, features, norm="dense" if shifted else "none", **own)
    training = configure_lenet(scale, spec, seed, norm="all" if shifted else "none", **own)
    return replace(training, bounded=BOUNDED[scale]) if layers else training


def list_cells(scale: str) -> dict[str, Json]:
    rows = {
        f"{name}, {SHIFTED}" if shifted else name: (layers, shifted)
        for shifted in (False, True)
        for name, layers in SETTINGS.items()
        if not shifted or "dense1" in layers  # max-pooling after conv2 is not odd: the argument does not hold there
    }
    return {
        f"{row}, seed {seed}": build_cell(configure_training(scale, *own, seed), configure_dropout_lenet(scale, seed))
        for row, own in rows.items()
        for seed in SEEDS[scale]
    }


class Measured(TrainedCell):
    """Accuracies of one draw and of twenty."""

    one: Share
    many: Share


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    samples = (1, 20) if done.ensemble.sampled else (None, None)
    one, many = (measure_accuracy(done.ensemble, done.x, done.y, count) for count in samples)
    return trained | {"one": one, "many": many}


def tabulate(found: Found) -> list[Json]:
    return [{"layers": row} | tabulate_share(cells, ("one", "many")) for row, cells in group_seeds(found).items()]


def judge(found: Found) -> list[Verdict]:
    rows = group_seeds(found)
    one, many = ({row: average(cells, key) for row, cells in rows.items()} for key in ("one", "many"))
    seen = {(row, key): format_share(estimate(take(rows[row], key))) for row in rows for key in ("one", "many")}
    gain = compare(rows[BOTH], rows[BOTH], "many", against="one")
    plain = require_accuracy("the tanh network without variance layers is", LEAST_PLAIN, {"": many["none"]})
    common = [require_seeds(found), require_base(found, 0.994), plain]
    bare = judge_claim(
        "Without biases and with an odd activation, a variance layer before the classifier still answers (98.8 % one draw).",
        "one draw within 1 point of 98.8 %, mean over seeds, with no bias anywhere. It cannot be: the logits z and −z are then "
        "equally likely, and no more than one of them is right, so that one draw is right at most half of the time",
        f"{seen['dense1', 'one']} one draw, {seen['dense1', 'many']} of 20",
        abs(one["dense1"] - 0.988) <= 0.01,
    )
    single = judge_claim(
        "One variance layer still classifies (99.4 % averaged in conv2; in dense1, where BatchNorm may shift, 99.2 %).",
        "means over seeds within 0.5 points of the paper's; direction: both within 3 points of the network without "
        "variance layers",
        f"conv2 {seen[CONV2, 'many']}, {DENSE1} {seen[DENSE1, 'many']}, none {seen['none', 'many']}",
        abs(many[CONV2] - 0.994) <= 0.005 and abs(many[DENSE1] - 0.992) <= 0.005,
        min(many[CONV2], many[DENSE1]) >= many["none"] - 0.03,
    )
    two = judge_claim(
        "Two variance layers in a row cost accuracy (93.2 % one draw, 97.5 % averaged), and averaging helps.",
        "with BatchNorm: averaged between 95 and 99 %, mean over seeds, one draw at least 2 points below, beyond the 95 % "
        "interval "
        "of the difference; direction: both below one variance layer",
        f"{seen[BOTH, 'one']} one draw, {seen[BOTH, 'many']} averaged, gain {format_points(gain)}",
        0.95 <= many[BOTH] <= 0.99 and gain.value >= 0.02 and gain.low > 0,
        many[BOTH] < min(many[CONV2], many[DENSE1]) and one[BOTH] < many[BOTH],
    )
    cells = {row: list(own.values()) for row, own in rows.items()}
    return [
        *judge_under([bare], *common),
        *judge_under([single], *common, require_bound({row: cells[row] for row in (CONV2, DENSE1)})),
        *judge_under([two], *common, require_bound({row: cells[row] for row in (CONV2, DENSE1, BOTH)})),
    ]


PAPER = {"none": (99.4, 99.4), "conv2": (98.8, 99.4), "dense1": (98.8, 99.2), "both": (93.2, 97.5)}
RECIPE = Recipe(
    id="variance/table-3",
    title="Antisymmetric activations, no biases",
    question="Is it the mean after the activation that carries the answer?",
    source="table 3, appendix C",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale(
            "LeNet-5 with tanh and without biases, on all of MNIST, 12 epochs with batches of 500 instead of 200 with "
            "200; where "
            "dense1 alone is random, 60 epochs on the features of the network without variance layers. Three seeds.",
            list_cells("cpu"),
            ("mnist",),
        ),
        "paper": Scale("LeNet-5 with tanh and without biases on MNIST, 200 epochs.", list_cells("paper"), ("mnist",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"layers": "variance layers", "one": "one draw, %", "one_margin": "±", "many": "20 draws, %", "many_margin": "±"},
    published=[{"layers": name, "one": one, "many": many} for name, (one, many) in PAPER.items()],
    departures=[
        DENSE_DEPARTURE,
        "The paper does not say whether the tanh network of table 3 has BatchNorm, whose shift is a bias: both ways are run.",
    ],
)
