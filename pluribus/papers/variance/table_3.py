"""variance/table-3: tanh and no biases, so that a variance layer's response has mean zero even after its activation."""

from dataclasses import replace

from ...file_formats.schema import Schema, Share
from ...methods.single import Single
from ...methods.variance import Variance
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import configure_lenet
from .trainings import Training, measure_accuracy, train_once

SETTINGS: dict[str, tuple[str, ...]] = {"none": (), "conv2": ("conv2",), "dense1": ("dense1",), "both": ("conv2", "dense1")}
SHIFTED = "with BatchNorm"
"""The shift of a BatchNorm acts as a bias."""


def list_cells(scale: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for norm, suffix in (("none", ""), ("all", f", {SHIFTED}")):
        own: Json = {"norm": norm, "bias": False, "activation": "tanh"}
        for name, layers in SETTINGS.items():
            if suffix and "dense1" not in layers:  # max-pooling after conv2 is not odd: the argument does not hold there
                continue
            spec = Variance(include=layers) if layers else Single()
            training = configure_lenet(scale, spec, **own)
            training = replace(training, epochs=5) if scale == "cpu" else training
            found[name + suffix] = {"seed": 0, "training": training.to_json()}
    return found


class Measured(Schema):
    """Accuracies of one draw and of twenty."""

    one: Share
    many: Share


def measure(options: Json, workspace: Workspace) -> Json:
    done = train_once(Training.from_json(options["training"]), workspace)
    samples = (1, 20) if done.ensemble.sampled else (None, None)
    one, many = (measure_accuracy(done.ensemble, done.x, done.y, count) for count in samples)
    return {"one": one, "many": many}


def tabulate(found: Found) -> list[Json]:
    return [{"layers": name, "one": 100 * cell["one"], "many": 100 * cell["many"]} for name, cell in found.items()]


def judge(found: Found) -> list[Verdict]:
    one, many = ({name: cell[key] for name, cell in found.items()} for key in ("one", "many"))
    conv2, dense1, both = "conv2", f"dense1, {SHIFTED}", f"both, {SHIFTED}"
    evidence = ", ".join(f"{name} {format_percent(many[name])}" for name in (conv2, dense1))
    return [
        judge_claim(
            "Without biases and with an odd activation, a variance layer before the classifier still answers (98.8 % one "
            "draw).",
            "one draw within 1 point of 98.8 %, with no bias anywhere. It cannot be: the logits z and −z are then equally "
            "likely, and no more than one of them is right, so that one draw is right at most half of the time",
            f"{format_percent(one['dense1'])} one draw, {format_percent(many['dense1'])} of 20",
            abs(one["dense1"] - 0.988) <= 0.01,
        ),
        judge_claim(
            "One variance layer still classifies (99.4 % averaged in conv2; in dense1, where BatchNorm may shift, 99.2 %).",
            "both within 0.5 points of the paper's; direction: both within 3 points of the network without variance layers",
            f"{evidence}, none {format_percent(many['none'])}",
            abs(many[conv2] - 0.994) <= 0.005 and abs(many[dense1] - 0.992) <= 0.005,
            min(many[conv2], many[dense1]) >= many["none"] - 0.03,
        ),
        judge_claim(
            "Two variance layers in a row cost accuracy (93.2 % one draw, 97.5 % averaged), and averaging helps.",
            "with BatchNorm: averaged between 95 and 99 %, one draw at least 2 points below; direction: both below one "
            "variance layer",
            f"{format_percent(one[both])} one draw, {format_percent(many[both])} averaged",
            0.95 <= many[both] <= 0.99 and one[both] <= many[both] - 0.02,
            many[both] < min(many[conv2], many[dense1]) and one[both] < many[both],
        ),
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
            "LeNet-5 with tanh and without biases or BatchNorm on MNIST, 5 epochs instead of 200.",
            list_cells("cpu"),
            ("mnist",),
        ),
        "paper": Scale("LeNet-5 with tanh and without biases on MNIST, 200 epochs.", list_cells("paper"), ("mnist",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"layers": "variance layers", "one": "one draw, %", "many": "20 draws, %"},
    published=[{"layers": name, "one": one, "many": many} for name, (one, many) in PAPER.items()],
    departures=[
        "The paper does not say whether the tanh network of table 3 has BatchNorm, whose shift is a bias: both ways are run."
    ],
)
