"""variance/table-3: tanh and no biases, so that a variance layer's response has mean zero even after its activation."""

from dataclasses import replace

from ...methods.single import Single
from ...methods.variance import Variance
from ..recipe import Found, Json, Place, Recipe, Scale
from ..verdicts import Verdict, percent, verdict
from .trainings import Training, accuracy, lenet, trained

SETTINGS: dict[str, tuple[str, ...]] = {"none": (), "conv2": ("conv2",), "dense1": ("dense1",), "both": ("conv2", "dense1")}


def cells(scale: str) -> dict[str, Json]:
    specs = {name: Variance(include=layers) if layers else Single() for name, layers in SETTINGS.items()}
    own: Json = {"norm": "none", "bias": False, "activation": "tanh"}
    fewer: Json = {"epochs": 5} if scale == "cpu" else {}
    trainings = {name: replace(lenet(scale, spec, **own), **fewer) for name, spec in specs.items()}
    return {name: {"seed": 0, "training": training.to_json()} for name, training in trainings.items()}


def measure(options: Json, place: Place) -> Json:
    done = trained(Training.from_json(options["training"]), place)
    samples = (1, 20) if done.ensemble.sampled else (None, None)
    one, many = (accuracy(done.ensemble, done.x, done.y, count) for count in samples)
    return {"one": one, "many": many}


def rows(found: Found) -> list[Json]:
    return [{"layers": name, "one": 100 * cell["one"], "many": 100 * cell["many"]} for name, cell in found.items()]


def judge(found: Found) -> list[Verdict]:
    one, many = ({name: cell[key] for name, cell in found.items()} for key in ("one", "many"))
    return [
        verdict(
            "Without a mean even after the activation, one variance layer still classifies (99.4 and 99.2 % averaged).",
            "both within 0.5 points of the paper's; direction: both within 3 points of the network without variance layers",
            f"conv2 {percent(many['conv2'])}, dense1 {percent(many['dense1'])}, none {percent(many['none'])}",
            abs(many["conv2"] - 0.994) <= 0.005 and abs(many["dense1"] - 0.992) <= 0.005,
            min(many["conv2"], many["dense1"]) >= many["none"] - 0.03,
        ),
        verdict(
            "Two variance layers in a row cost accuracy (93.2 % one draw, 97.5 % averaged), and averaging helps.",
            "averaged between 95 and 99 %, one draw at least 2 points below; direction: both below one variance layer",
            f"{percent(one['both'])} one draw, {percent(many['both'])} averaged",
            0.95 <= many["both"] <= 0.99 and one["both"] <= many["both"] - 0.02,
            many["both"] < min(many["conv2"], many["dense1"]) and one["both"] < many["both"],
        ),
    ]


PAPER = {"none": (99.4, 99.4), "conv2": (98.8, 99.4), "dense1": (98.8, 99.2), "both": (93.2, 97.5)}
RECIPE = Recipe(
    id="variance/table-3",
    title="Antisymmetric activations, no biases",
    question="Is it the mean after the activation that carries the answer?",
    source="table 3, appendix C",
    scales={
        "smoke": Scale("300 digits, a narrow LeNet, 2 epochs.", cells("smoke")),
        "cpu": Scale(
            "LeNet-5 with tanh and without biases or BatchNorm on MNIST, 5 epochs instead of 200.", cells("cpu"), ("mnist",)
        ),
        "paper": Scale("LeNet-5 with tanh and without biases or BatchNorm on MNIST, 200 epochs.", cells("paper"), ("mnist",)),
    },
    measure=measure,
    rows=rows,
    judge=judge,
    columns={"layers": "variance layers", "one": "one draw, %", "many": "20 draws, %"},
    paper=[{"layers": name, "one": one, "many": many} for name, (one, many) in PAPER.items()],
    departures=["The paper does not say whether the tanh network has BatchNorm; its shift would be a bias, so ours has none."],
)
