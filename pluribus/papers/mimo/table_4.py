"""mimo/table-4: ResNet-50, MIMO and wide MIMO on ImageNet and on sets that differ from it."""

from ...data import load
from ...file_formats.schema import NotNegative, Schema, Share
from ...metrics.calibration import ece
from ...metrics.classification import accuracy
from ...runs.loading import align_classes
from .. import image_folders
from ..classification_scores import measure_corrupted, measure_scores, predict_rows
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, format_percent, judge_claim
from .benchmark import DETERMINISTIC, MIMO, average, list_rows
from .configurations import SEEDS
from .imagenet import configure
from .table_3 import CORRUPTED, METHODS, WIDE_MIMO

SETS = {"imagenet_a": "imagenet-a", "imagenet_v2": "imagenet-v2", "objectnet": "objectnet"}
ROWS = (DETERMINISTIC, MIMO, WIDE_MIMO)
PUBLISHED = [
    {"method": DETERMINISTIC, "nll": 0.939, "accuracy": 76.2, "ece": 0.032, "cnll": 3.21, "cacc": 40.5, "cece": 0.103}
    | {"imagenet_a_nll": 8.09, "imagenet_a_accuracy": 0.7, "imagenet_a_ece": 0.425}
    | {"imagenet_v2_nll": 1.58, "imagenet_v2_accuracy": 64.4, "imagenet_v2_ece": 0.074, "objectnet_accuracy": 25.9},
    {"method": MIMO, "nll": 0.887, "accuracy": 77.5, "ece": 0.037, "cnll": 3.03, "cacc": 43.3, "cece": 0.106}
    | {"imagenet_a_nll": 7.76, "imagenet_a_accuracy": 1.4, "imagenet_a_ece": 0.432}
    | {"imagenet_v2_nll": 1.51, "imagenet_v2_accuracy": 65.7, "imagenet_v2_ece": 0.084, "objectnet_accuracy": 28.1},
    {"method": WIDE_MIMO, "nll": 0.843, "accuracy": 79.3, "ece": 0.061, "cnll": 3.1, "cacc": 45.0, "cece": 0.150}
    | {"imagenet_a_nll": 7.52, "imagenet_a_accuracy": 3.3, "imagenet_a_ece": 0.46}
    | {"imagenet_v2_nll": 1.49, "imagenet_v2_accuracy": 67.9, "imagenet_v2_ece": 0.109, "objectnet_accuracy": 29.5},
]


class Measured(Schema):
    """NLL, accuracy and ECE on every set."""

    nll: NotNegative
    accuracy: Share
    ece: Share
    cnll: NotNegative
    cacc: Share
    cece: Share
    imagenet_a_nll: NotNegative
    imagenet_a_accuracy: Share
    imagenet_a_ece: Share
    imagenet_v2_nll: NotNegative
    imagenet_v2_accuracy: Share
    imagenet_v2_ece: Share
    objectnet_nll: NotNegative
    objectnet_accuracy: Share
    objectnet_ece: Share


def list_cells(scale: str) -> dict[str, Json]:
    return {
        f"{row}, seed {seed}": {
            "seed": seed,
            "scale": scale,
            "training": configure(scale, METHODS[row][0], METHODS[row][1], epochs=METHODS[row][2]),
            "corrupted": CORRUPTED[scale],
        }
        for row in ROWS
        for seed in range(SEEDS[scale])
    }


def measure(options: Json, workspace: Workspace) -> Json:
    scale = options["scale"]
    data = {"data": image_folders.locate_images(image_folders.TRAINED, scale, workspace), "seed": options["seed"]}
    trained = train_once(options["training"] | data, workspace)
    found = measure_scores(trained) | measure_corrupted(trained, **options["corrupted"])
    for key, name in SETS.items():
        workspace.report(name)
        choice = image_folders.locate_images(name, scale, workspace)
        other = align_classes(load(**choice), list(trained.data.classes)).test
        answer = predict_rows(trained, other.x)
        found |= {f"{key}_nll": answer.nll(other.y).mean().item(), f"{key}_accuracy": accuracy(answer, other.y)}
        found |= {f"{key}_ece": ece(answer, other.y)}
    return {name: found[name] for name in Measured.model_fields}


def tabulate(found: Found) -> list[Json]:
    return [
        {"method": row}
        | {key: (100 if is_share(key) else 1) * average(found, row, key) for key in Measured.model_fields if key in COLUMNS}
        for row in list_rows(found)
    ]


def is_share(key: str) -> bool:
    return key.endswith(("accuracy", "cacc"))


def judge(found: Found) -> list[Verdict]:
    keys = ("accuracy", "cacc", *(f"{name}_accuracy" for name in SETS))
    better = {key: average(found, MIMO, key) - average(found, DETERMINISTIC, key) for key in keys}
    return [
        judge_claim(
            "MIMO is better than one network on every one of these sets.",
            "higher accuracy on each; direction: on most",
            ", ".join(f"{key.replace('_', ' ')} {format_percent(value)} more" for key, value in better.items()),
            all(value > 0 for value in better.values()),
            sum(value > 0 for value in better.values()) > len(better) / 2,
        )
    ]


COLUMNS = {
    "method": "method",
    "nll": "NLL",
    "accuracy": "accuracy, %",
    "ece": "ECE",
    "cnll": "cNLL",
    "cacc": "cAcc, %",
    "cece": "cECE",
    "imagenet_a_nll": "A: NLL",
    "imagenet_a_accuracy": "A: accuracy, %",
    "imagenet_a_ece": "A: ECE",
    "imagenet_v2_nll": "V2: NLL",
    "imagenet_v2_accuracy": "V2: accuracy, %",
    "imagenet_v2_ece": "V2: ECE",
    "objectnet_accuracy": "ObjectNet: accuracy, %",
}
FRAMES = {"ImageNet-Vid-Robust and YTBB-Robust": "their score needs the frames of videos around each image"}

RECIPE = Recipe(
    id="mimo/table-4",
    title="ImageNet and sets that differ from it",
    question="Does MIMO hold up where the data differ from those of training?",
    source="table 4, appendix D",
    scales={
        "smoke": Scale("24 generated images a set, parts of ResNet-50, 1 epoch.", list_cells("smoke"), not_run=FRAMES),
        "cpu": Scale("", {}, not_run=image_folders.NOT_RUN),
        "paper": Scale("ResNet-50 on ImageNet, the published settings.", list_cells("paper"), not_run=FRAMES),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns=COLUMNS,
    published=PUBLISHED,
    departures=["In table-4 answers on ImageNet-A and ObjectNet are over all classes; the text does not say over which."],
)
