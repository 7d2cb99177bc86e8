"""variance/absolute: a zero-mean dense layer followed by the absolute value."""

from ...file_formats.schema import Schema, Share, Size
from ...methods.variance import Variance
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim, skip_claim, wilson_margin
from .configurations import configure_vgg, configure_zero_mean_lenet
from .trainings import Training, measure_accuracy, train_once

VGG_DENSE = "3"
"""The first dense layer of the VGG-like network."""


def list_cells(scale: str, cifar: bool = False) -> dict[str, Json]:
    found = {
        "LeNet-5, MNIST, |·|": configure_zero_mean_lenet(scale, dense_activation="absolute"),
        "LeNet-5, MNIST, ReLU": configure_zero_mean_lenet(scale),
    }
    if cifar:
        found["VGG-like, CIFAR-10, |·|"] = configure_vgg(scale, Variance(include=VGG_DENSE), dense_activation="absolute")
    return {name: {"seed": 0, "training": training.to_json()} for name, training in found.items()}


class Measured(Schema):
    """Accuracies of one draw and of twenty, and the number of test rows."""

    one: Share
    many: Share
    rows: Size


def measure(options: Json, workspace: Workspace) -> Json:
    done = train_once(Training.from_json(options["training"]), workspace)
    one, many = (measure_accuracy(done.ensemble, done.x, done.y, samples) for samples in (1, 20))
    return {"one": one, "many": many, "rows": len(done.y)}


def tabulate(found: Found) -> list[Json]:
    return [{"network": name, "one": 100 * cell["one"], "many": 100 * cell["many"]} for name, cell in found.items()]


def judge(found: Found) -> list[Verdict]:
    absolute, relu = found["LeNet-5, MNIST, |·|"], found["LeNet-5, MNIST, ReLU"]
    gain = absolute["one"] - relu["one"]
    verdicts = [
        judge_claim(
            "LeNet-5 reaches 99.2 % averaged.",
            "at least 99.0 %; direction: at least 98 %",
            format_percent(absolute["many"]),
            absolute["many"] >= 0.99,
            absolute["many"] >= 0.98,
        ),
        judge_claim(
            "The absolute value lessens the noise: a ReLU would also drop half of the neurons at random.",
            "one draw is better than with a ReLU, beyond the interval; direction: better",
            f"one draw: {format_percent(absolute['one'])} against {format_percent(relu['one'])}",
            gain > wilson_margin(absolute["one"], absolute["rows"]) + wilson_margin(relu["one"], relu["rows"]),
            gain > 0,
        ),
    ]
    deep = found.get("VGG-like, CIFAR-10, |·|")
    claim = "The VGG-like network reaches 92.9 % averaged on CIFAR-10."
    if deep is None:
        return [*verdicts, skip_claim(claim, "only at scale paper")]
    met, near = abs(deep["many"] - 0.929) <= 0.01, deep["many"] >= 0.9
    return [*verdicts, judge_claim(claim, "within 1 point; direction: at least 90 %", format_percent(deep["many"]), met, near)]


RECIPE = Recipe(
    id="variance/absolute",
    title="Zero-mean layer and absolute value",
    question="Is the absolute value a better activation for a zero-mean layer than ReLU?",
    source="the earlier version, appendix D",
    scales={
        "smoke": Scale("100 digits, a narrow LeNet, 2 epochs.", list_cells("smoke")),
        "cpu": Scale("The zero-mean LeNet-5 on MNIST, 8 epochs instead of 200.", list_cells("cpu"), ("mnist",)),
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
    columns={"network": "network", "one": "one draw, %", "many": "20 draws, %"},
    published=[{"network": "LeNet-5, MNIST, |·|", "many": 99.2}, {"network": "VGG-like, CIFAR-10, |·|", "many": 92.9}],
)
