"""A run that is finished: its ensemble, and rows to judge it by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError
from ..core.saving import load as load_ensemble
from ..core.seeds import derive_seed, set_seed
from ..data import Columns, Data, load
from ..data.catalog import SETS
from ..data.dataset import Part
from ..data.preparation import Preparation
from ..data.table import SUFFIXES, read_table
from ..models.registry import build
from . import config as configs
from .config import Config, ConfigError, configured
from .folder import Run

WEIGHTS, SPLIT = 5, 6  # places of the seed


def network(config: Config, shape: tuple[int, ...], outputs: int) -> nn.Module:
    """The base network, with weights drawn from the seed: what is drawn next is a function of it, too."""
    assert config.model is not None
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in config.model.items() if key != "name"}
    set_seed(derive_seed(config.seed, WEIGHTS))
    return build(config.model["name"], shape, outputs, **options)


def divided(config: Config, data: Data) -> tuple[Part, Part]:
    """The rows to train by, and those set aside to judge by while training."""
    return data.split(config.validation, derive_seed(config.seed, SPLIT))


def trained(run: Run) -> tuple[Ensemble, Config, dict[str, Any], Preparation]:
    """The ensemble of a finished run, its configuration, and how its data was prepared."""
    config = configured(configs.read(run.config), str(run.config))
    about = run.read_json("data.json")
    if not run.weights.is_file():
        raise FileError(f"{run.path} is not finished: go on with `pluribus train --resume {run.path}`")
    try:
        shape, outputs = tuple(about["shape"]), len(about["classes"]) or 1
        preparation = Preparation.from_json(about["preparation"])
        if about["task"] not in ("classification", "regression"):
            raise TypeError(about["task"])
    except (KeyError, TypeError, FileError) as error:
        raise FileError(
            f"{run.path / 'data.json'} is damaged, it does not describe data: take it from a copy of the run, or train again"
        ) from error
    if config.model is None:
        raise FileError(f"{run.config} is damaged: it names no model")
    with torch.random.fork_rng(devices=[]):
        made = load_ensemble(run.weights, network(config, shape, outputs))
    if made.spec != config.spec:
        raise FileError(f"{run.weights} holds {made.spec}, but the run is of {config.spec}")
    return made.eval(), config, about, preparation


def draw(ensemble: Ensemble, samples: int) -> None:
    """So many members of a stochastic method."""
    if not ensemble.sampled:
        raise ConfigError(f"{ensemble.spec.name} draws no samples: leave --samples out")
    ensemble.samples = samples


def rows_of(
    config: Config, about: dict[str, Any], preparation: Preparation, split: str, other: str | None
) -> tuple[Data, Part]:
    """The rows to judge by: a split of the run's own data, or another set with the same classes."""
    if other is not None and isinstance(preparation, Columns):
        return table_rows(configs.parse(other), preparation, config.data.get("header"))
    choice = config.data if other is None else configs.parse(other)
    data = load(choice["name"], config.data_dir, **{key: value for key, value in choice.items() if key != "name"})
    if tuple(data.shape) != tuple(about["shape"]) or data.task != about["task"]:
        raise ConfigError(
            f"{data.name} has inputs of {'×'.join(map(str, data.shape))} for {data.task}; the run learnt "
            f"{about['task']} of {'×'.join(map(str, about['shape']))}: choose data like that"
        )
    if other is None and config.data["name"] not in SETS:  # of a known set, test rows are what they are
        check_unchanged(data.subsample(config.rows, config.seed), about)
    data = renamed(replace(data, preparation=preparation), about["classes"])
    if split == "validation" or (split == "train" and other is None):  # as the run itself divided them
        kept, aside = divided(config, data.subsample(config.rows, config.seed))
        part = kept if split == "train" else aside
    else:
        part = data.test if split == "test" else data.train
    if not len(part):
        raise ConfigError(f"{data.name} has no {split} rows: choose --split train, validation or test")
    return data, part


def check_unchanged(data: Data, about: dict[str, Any]) -> None:
    """The rows must be those that the run began with: among others, the same ones would not be set aside."""
    now = {"train": len(data.train), "test": len(data.test), "shape": list(data.shape), "classes": list(data.classes)}
    for what, found in now.items():
        if about.get(what) != found:
            raise DataError(
                f"{data.source or data.name} has changed since the run began ({what}: {about.get(what)} then, {found} now): "
                "rows that it learnt from may now be set aside for the test; bring the old data back, or train anew"
            )


def renamed(data: Data, classes: list[str]) -> Data:
    """With the run's labels. A folder or file of one's own may lack classes; a known set's are taken in their order."""
    if list(data.classes) == classes:
        return data
    strange = [name for name in data.classes if name not in classes]
    if not strange:
        place = torch.tensor([classes.index(name) for name in data.classes])
        train, test = (Part(part.x, place[part.y]) for part in (data.train, data.test))
        return replace(data, train=train, test=test, classes=tuple(classes))
    if data.name not in SETS:
        raise ConfigError(f"{data.name} has the class {strange[0]!r}, and the run knows {', '.join(classes)}")
    if len(data.classes) > len(classes):
        raise ConfigError(f"{data.name} has {len(data.classes)} classes, and the run knows {len(classes)}: choose another set")
    return data


def table_rows(choice: dict[str, Any], preparation: Columns, header: bool | None) -> tuple[Data, Part]:
    """All rows of another table, encoded as those that the run learnt from; its own mean and spread would be others."""
    path = Path(choice["name"]).expanduser()
    if len(choice) > 1 or not path.name.lower().endswith(SUFFIXES):
        raise ConfigError(
            f"the run learnt from a table: --data must be one, with the same columns, got {configs.written(choice)}"
        )
    frame = read_table(path, header)
    try:
        part = Part(preparation.encode(frame), preparation.targets(frame))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return Data(path.name.split(".")[0], part, part, preparation, preparation.classes, str(path)), part
