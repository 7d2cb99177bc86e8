"""mixture/table-5: ResNet-50 on ImageNet at one and two networks' parameters, with disjoint templates."""

from .. import image_folders
from ..classification_scores import Scores, measure_scores
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, judge_claim
from .claims import average, compare_rows, list_rows
from .rows import SEEDS

BASELINE, BATCH_ENSEMBLE, MIMO, NAIVE = "baseline, 25.6M", "BatchEnsemble, 25.6M", "MIMO, 25.6M", "naive ensemble, 102.4M"
MIXTURE, LARGE = "mixture, 25.6M", "mixture, 51.2M"
METHODS: dict[str, Json] = {
    BASELINE: {"name": "single"},
    BATCH_ENSEMBLE: {"name": "batch-ensemble", "members": 4},
    MIMO: {"name": "mimo", "members": 3},
    MIXTURE: {"name": "mixture", "members": 4, "parameters": 1.0, "disjoint": True},
    LARGE: {"name": "mixture", "members": 4, "parameters": 2.0, "disjoint": True},
    NAIVE: {"name": "deep-ensemble", "members": 4},
}
TRAININGS: dict[str, Json] = {
    "smoke": {
        "epochs": 1,
        "batch_size": 8,
        "validation": 0.0,
        "augment": "none",
        "model": {"name": "resnet50", "width": 0.0625},
    },
    "paper": {
        "model": {"name": "resnet50"},
        "epochs": 90,
        "batch_size": 1024,
        "optimizer": "sgd",
        "nesterov": False,
        "lr": 1.6,
        "weight_decay": 1e-4,
        "bias_decay": False,
        "label_smoothing": 0.1,
        "warmup": 10,
        "schedule": "step",
        "milestones": [1 / 3, 2 / 3, 8 / 9],
        "gamma": 0.1,
        "validation": 0.0,
        "augment": "crop-flip",
    },
}
ACCURACIES = {BASELINE: 76.4, BATCH_ENSEMBLE: 76.7, MIMO: 77.5, MIXTURE: 77.2, NAIVE: 77.5, LARGE: 77.9}


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"{row}, seed {seed}": {"seed": seed, "scale": scale, "training": TRAININGS[scale] | {"method": method}}
        for row, method in METHODS.items()
        for seed in range(SEEDS[scale])
    }


def measure(options: Json, workspace: Workspace) -> Json:
    data = image_folders.locate_images(image_folders.TRAINED, options["scale"], workspace)
    return measure_scores(train_once(options["training"] | {"data": data, "seed": options["seed"]}, workspace))


def tabulate(found: Found) -> list[Json]:
    return [{"method": row, "accuracy": 100 * average(found, row, "accuracy")} for row in list_rows(found)]


def judge(found: Found) -> list[Verdict]:
    low = {row: average(found, row, "accuracy") for row in METHODS}
    gain = compare_rows(found, LARGE, NAIVE, "error_blocks")
    return [
        judge_claim(
            "With half of the parameters it outperforms a naive ensemble.",
            "fewer errors beyond the interval; direction: fewer",
            f"errors {gain}",
            gain.high < 0,
            gain.value < 0,
        ),
        judge_claim(
            "At one network's parameters it is better than the baseline and BatchEnsemble.",
            "higher accuracy than both; direction: than the baseline",
            ", ".join(f"{row} {100 * value:.1f} %" for row, value in low.items()),
            low[MIXTURE] > max(low[BASELINE], low[BATCH_ENSEMBLE]),
            low[MIXTURE] > low[BASELINE],
        ),
    ]


RECIPE = Recipe(
    id="mixture/table-5",
    title="ImageNet",
    question="Do mixtures with disjoint templates help on ImageNet?",
    source="table 5, section 4.2",
    scales={
        "smoke": Scale("24 generated images, a sixteenth of ResNet-50, 1 epoch.", list_cells("smoke")),
        "cpu": Scale("", {}, not_run=image_folders.NOT_RUN),
        "paper": Scale("ResNet-50 on ImageNet, the published settings.", list_cells("paper")),
    },
    measure=measure,
    measured=Scores,
    tabulate=tabulate,
    judge=judge,
    columns={"method": "method", "accuracy": "accuracy, %"},
    published=[{"method": row, "accuracy": value} for row, value in ACCURACIES.items()],
    departures=["In table-5 images are cropped and flipped; the paper augments them in the manner of Inception."],
)
