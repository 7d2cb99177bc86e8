"""Search for a cell, and train its network from scratch: what table 3 measures.

A search and a training write their state after every epoch, so a cell that was killed goes on where it was. Several cells may
need one search: it is made once, in the folder of the paper.

At scale `cpu` images have 16×16 pixels, as those of ImageNet-16-120 in NAS-Bench-201, which costs a quarter. A search takes
hundreds of steps there, and not ten thousand or more, so the learning rate of the architecture parameters is a hundred times
that of NAS-Bench-201: at that rate they would end where they began. Cells have 8, 16 and 32 channels, one cell a stack. On one
core a search by DARTS takes six minutes (without IEN and maxout three), by GDAS one, and a training from one to two and a half:
fifty to sixty minutes in all.
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

import torch.nn.functional as F
from filelock import FileLock

from ...core.convert import ensemble as convert
from ...core.describe import count_parameters
from ...core.seeds import derive_seed, set_seed
from ...data.dataset import Data, Part
from ...file_formats.schema import Share, Size
from ...methods.single import Single
from ...runs.config import build_config
from ...runs.training import load_data
from ...search import BENCHMARK_OPERATIONS, Cell, FoundCell, build_network, draw_random_cell, make_operations, search_cell
from ...search.operations import Factory
from ...training.fit import fit
from ..classification_scores import Scores, measure_scores
from ..epoch_reporter import EpochReporter
from ..recipe import Json, Workspace
from ..trained_runs import Trained, add_data_folder
from .networks import COPIES

WEIGHTS = 21
"""The place of the seed from which the weights of a network are drawn."""
SIDES = {"smoke": 8, "cpu": 16, "paper": 32}
SIZES: dict[str, Json] = {
    "smoke": {"width": 2, "cells": 1, "stacks": 1},
    "cpu": {"width": 8, "cells": 1, "stacks": 3},
    "paper": {"width": 16, "cells": 5, "stacks": 3},
}
SEARCHES: dict[str, Json] = {
    "smoke": {"epochs": 1, "batch_size": 16},
    "cpu": {"epochs": 12, "batch_size": 32, "architecture_lr": 0.03},
    "paper": {"batch_size": 64},
}
LENGTHS = {"darts": 50, "gdas": 250}
"""Epochs of the published searches."""
SGD: Json = {"optimizer": "sgd", "nesterov": True, "lr": 0.1, "weight_decay": 5e-4, "schedule": "cosine", "validation": 0.0}
TRAININGS: dict[str, Json] = {
    "smoke": {"data": "digits", "rows": 48, "epochs": 1, "batch_size": 16} | SGD,
    "cpu": {"data": {"name": "cifar10", "first": 4000}, "epochs": 16, "batch_size": 64, "augment": "small-crop-flip"} | SGD,
    "paper": {"data": "cifar10", "epochs": 200, "batch_size": 256, "augment": "crop-flip"} | SGD,
}
OPERATIONS: dict[str, dict[str, Factory]] = {"all": make_operations(COPIES), "plain": dict(BENCHMARK_OPERATIONS)}
"""Those of NAS-Bench-201, with an inner ensemble and a maxout convolution, and without."""


class Measured(Scores):
    """Scores of the trained network, its parameters, its cell, and how sure the search was of each of its operations."""

    cell: str
    parameters: Size
    confidences: list[Share]
    """The probabilities of the operations that were chosen; none of a random cell."""


def configure_search(scale: str, algorithm: str, operations: str) -> Json:
    """The settings of a search, without its seed."""
    own: Json = {"epochs": LENGTHS[algorithm]} if scale == "paper" else {}
    return {"algorithm": algorithm, "operations": operations} | SEARCHES[scale] | SIZES[scale] | own


def measure(options: Json, workspace: Workspace) -> Json:
    """Find a cell or draw one, train its network, and score it on the test rows."""
    cell, confidences = choose_cell(options, workspace)
    trained = train_cell(cell, options, workspace)
    workspace.report("scores")
    found = measure_scores(trained) | {"cell": str(cell), "confidences": confidences}
    return found | {"parameters": count_parameters(trained.ensemble)}


def choose_cell(options: Json, workspace: Workspace) -> tuple[Cell, list[float]]:
    """The cell that a search finds, with the probabilities of its operations; a random one without a search."""
    if options["search"] is None:
        return draw_random_cell(OPERATIONS["all"], seed=options["seed"]), []
    found = search_once(options["search"] | {"seed": options["seed"]}, options, workspace)
    return found.cell, [max(row) for row in found.probabilities]


def search_once(settings: Json, options: Json, workspace: Workspace) -> FoundCell:
    """Search, or go on with a search, or load what another cell found. Half of the training rows judge the architecture."""
    data = load_images(options["searched"], options["side"], workspace)
    half = len(data.train) // 2
    rows, judged = ((data.train.x[part], data.train.y[part]) for part in (slice(half), slice(half, None)))
    digest = hashlib.sha256(json.dumps([settings, options["searched"], options["side"]], sort_keys=True).encode()).hexdigest()[
        :10
    ]
    folder = workspace.shared / f"search-{settings['algorithm']}-seed{settings['seed']}-{digest}"
    own = {name: value for name, value in settings.items() if name != "operations"}
    workspace.shared.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        return search_cell(
            rows,
            judged,
            classes=data.outputs,
            operations=OPERATIONS[settings["operations"]],
            preparation=data.preparation,
            augmentation=options["searched"].get("augment", "none"),
            folder=folder,
            resume=True,
            progress=False,
            on_epoch=lambda row: workspace.report(f"search, epoch {row.epoch}/{settings['epochs']}"),
            **own,
        )


def train_cell(cell: Cell, options: Json, workspace: Workspace) -> Trained:
    """Train the network of a cell from scratch on all training rows, or go on with that."""
    config = build_config(add_data_folder(options["training"] | {"seed": options["seed"]}, workspace))
    data = load_images(options["training"], options["side"], workspace)
    set_seed(derive_seed(options["seed"], WEIGHTS))
    sizes = {name: options["sizes"][name] for name in ("width", "cells", "stacks")}
    network = build_network(cell, classes=data.outputs, channels=data.shape[0], operations=OPERATIONS["all"], **sizes)
    x = data.preparation(data.test.x)
    ensemble = convert(network.train(), Single(), example=x[:2])
    fit(
        ensemble,
        (data.train.x, data.train.y),
        folder=workspace.folder / "training",
        resume=True,
        settings=config,
        preparation=data.preparation,
        augmentation="none" if config.augment == "auto" else config.augment,
        callbacks=[EpochReporter(workspace, config.most_epochs)],
        progress=False,
    )
    return Trained(ensemble.eval(), data, x, data.test.y, config)


def load_images(settings: Json, side: int, workspace: Workspace) -> Data:
    """The data of a training, with images of `side`×`side` pixels."""
    data = load_data(build_config(add_data_folder(dict(settings), workspace)))
    factor = data.shape[-1] // side

    def shrink(part: Part) -> Part:
        x: Any = part.x if factor == 1 else F.avg_pool2d(part.x.float(), factor).round().to(part.x.dtype)
        return Part(x, part.y)

    return replace(data, train=shrink(data.train), test=shrink(data.test))
