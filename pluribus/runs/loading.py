"""Loading what a configuration names: the network, the data, and the trained ensemble of a finished run.

`pluribus.compare` passes networks and data as Python objects. A configuration names such an object `<SmallNet>`; the object
itself stays in memory, in `passed_objects`.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError
from ..core.initialization import redraw_weights
from ..core.saving import load as load_ensemble
from ..core.seeds import derive_seed, set_seed
from ..data import Columns, Data, load
from ..data.catalog import SETS
from ..data.dataset import Part
from ..data.preparation import Preparation
from ..data.table_files import SUFFIXES, read_table
from ..models.factories import import_factory
from ..models.registry import MODELS, build
from . import config as configs
from .choices import format_choice, parse_choice
from .config import MOST, Config, ConfigError
from .consent import Trust, check_consent, give_consent, read_as_data
from .run_folder import Run

WEIGHTS, SPLIT = 5, 6
"""Which streams of a run's seed the weights and the split into training and validation rows are drawn from."""

_passed: ContextVar[Mapping[str, Any]] = ContextVar("passed", default=MappingProxyType({}))


@contextlib.contextmanager
def passed_objects(objects: Mapping[str, Any]) -> Iterator[None]:
    """Networks, factories and `Data` that configurations may name meanwhile, by names such as `<SmallNet>`."""
    token = _passed.set(objects)
    try:
        yield
    finally:
        _passed.reset(token)


def find_passed(name: str) -> Any:
    """The object that was passed from Python under this name; None for the name of a known model or data set.

    Raises FileError if the object is not in memory, which is so when another process reads the run.
    """
    if not name.startswith("<"):
        return None
    found = _passed.get().get(name)
    if found is None:
        raise FileError(
            f"{name} was passed to pluribus.compare as a Python object, which a run folder does not hold: call "
            "pluribus.compare(…, folder=…, resume=True) with the same object, or load the weights with pluribus.load(file, net)"
        )
    return found


def build_network(
    config: Config, shape: tuple[int, ...], outputs: int, column_widths: tuple[int, ...] | None = None
) -> nn.Module:
    """The base network with weights drawn from the seed. The state of the generator afterwards follows from the seed, too.

    Of a network that was passed as an object, a copy is drawn anew at the scale of its weights. Raises ConsentError if the
    model is a factory that the user has not consented to.
    """
    assert config.model is not None
    check_consent(config.model)
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in config.model.items() if key != "name"}
    for option in ("model", "shape", "outputs", "column_widths"):
        if option in options:
            raise ConfigError(f"{config.model['name']} has no option {option!r}, which follows from the data: leave it out")
    set_seed(derive_seed(config.seed, WEIGHTS))
    passed = find_passed(config.model["name"])
    if isinstance(passed, nn.Module):
        return redraw_weights(copy.deepcopy(passed))
    name = config.model["name"] if passed is None else passed
    return build(name, shape, outputs, column_widths=column_widths, **options)


def find_factory(name: str) -> Callable[..., nn.Module]:
    """What `build_network` calls for a model of this name; for a network that was passed, a function without arguments."""
    check_consent(name)
    passed = find_passed(name)
    if isinstance(passed, nn.Module):
        return lambda: copy.deepcopy(passed)
    if passed is not None:
        return passed
    return import_factory(name) if ":" in name else MODELS[name.replace("_", "-")].factory


def load_set(choice: Mapping[str, Any], folder: str | None) -> Data:
    """The data set of a choice: an object that was passed from Python, a known set, or a file."""
    passed = find_passed(choice["name"])
    if passed is not None:
        return passed
    return load(choice["name"], folder, **{key: value for key, value in choice.items() if key != "name"})


def split_rows(config: Config, data: Data) -> tuple[Part, Part]:
    """The rows to train on, and the validation rows."""
    return data.split(config.validation, derive_seed(config.seed, SPLIT))


def load_run(run: Run, trust: Trust = False) -> tuple[Ensemble, Config, dict[str, Any], Preparation]:
    """The ensemble of a finished run, its configuration, and how its data was prepared.

    `trust` names factories that the run's files may name, as in `pluribus.compare`. Raises ConsentError if its network is a
    factory that the user has not consented to, and FileError if it is damaged.
    """
    config = configs.read_config(run.config)
    about = run.read_json("data.json")
    if not run.weights.is_file():
        what = "has lost its weights: make them again" if run.is_finished else "is not finished: go on"
        raise FileError(f"{run.path} {what} with `pluribus train --resume {run.path}`")
    shape, outputs = tuple(about["shape"]), len(about["classes"]) or 1
    preparation = Preparation.from_json(about["preparation"])
    if config.model is None:
        raise FileError(f"{run.config} is damaged: it names no model")
    with give_consent(trust), torch.random.fork_rng(devices=[]), read_as_data(run.path):
        check_consent(config.model, run.config)
        made = load_ensemble(run.weights, build_network(config, shape, outputs, preparation.column_widths))
    if made.noise != config.target_noise:
        raise FileError(f"{run.weights} and {run.config} differ in noise: they are not of one run")
    if made.quantile_levels != config.quantiles:
        raise FileError(f"{run.weights} and {run.config} differ in quantiles: they are not of one run")
    if made.spec != config.spec:
        raise FileError(f"{run.weights} holds {made.spec}, but the run is of {config.spec}")
    return made.eval(), config, about, preparation


def set_samples(ensemble: Ensemble, samples: int) -> None:
    """Set the number of draws of a method that draws noise. Raises ConfigError for other methods."""
    if not ensemble.sampled:
        raise ConfigError(f"{ensemble.spec.name} draws no samples: leave --samples out")
    if not 1 <= samples <= MOST["samples"]:
        raise ConfigError(f"samples must be at least 1 and at most {MOST['samples']:,}, got {samples:,}")
    ensemble.samples = samples


def load_rows(
    config: Config, about: dict[str, Any], preparation: Preparation, split: str, other: str | None
) -> tuple[Data, Part]:
    """The rows to evaluate on: a split of the run's own data, or another set with the same classes."""
    if other is not None and isinstance(preparation, Columns):
        return load_table_rows(parse_choice(other), preparation, config.data.get("header"))
    choice = config.data if other is None else parse_choice(other)
    data = load_set(choice, config.data_dir)
    if tuple(data.shape) != tuple(about["shape"]) or data.task != about["task"]:
        raise ConfigError(
            f"{data.name} has inputs of {'×'.join(map(str, data.shape))} for {data.task}; the run was trained on "
            f"{about['task']} of {'×'.join(map(str, about['shape']))}: choose data like that"
        )
    if other is None and config.data["name"] not in SETS:  # known sets do not change
        check_unchanged(data.subsample(config.rows, config.seed), about)
    data = align_classes(replace(data, preparation=preparation), about["classes"])
    if split == "validation" or (split == "train" and other is None):  # split as in training
        kept, aside = split_rows(config, data.subsample(config.rows, config.seed))
        part = kept if split == "train" else aside
    else:
        part = data.test if split == "test" else data.train
    if not len(part):
        raise ConfigError(f"{data.name} has no {split} rows: choose --split train, validation or test")
    return data, part


def check_unchanged(data: Data, about: dict[str, Any]) -> None:
    """Raise DataError if the rows are not those that the run began with: the split would set aside other rows."""
    now = {"train": len(data.train), "test": len(data.test), "shape": list(data.shape), "classes": list(data.classes)}
    for what, found in now.items():
        if about.get(what) != found:
            raise DataError(
                f"{data.source or data.name} has changed since the run began ({what}: {about.get(what)} then, {found} now): "
                "rows that it was trained on may now be test rows; bring the old data back, or train again"
            )


def align_classes(data: Data, classes: list[str]) -> Data:
    """Number the labels as the run does. A folder or file may lack classes; those of a known set are taken in their order."""
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


def load_table_rows(choice: dict[str, Any], preparation: Columns, header: bool | None) -> tuple[Data, Part]:
    """All rows of another table, encoded with the mean and spread of the training table."""
    path = Path(choice["name"]).expanduser()
    if len(choice) > 1 or not path.name.lower().endswith(SUFFIXES):
        raise ConfigError(
            f"the run was trained on a table: --data must be one, with the same columns, got {format_choice(choice)}"
        )
    frame = read_table(path, header, infer=False)
    try:
        part = Part(preparation.encode(frame), preparation.targets(frame))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return Data(path.name.split(".")[0], part, part, preparation, preparation.classes, str(path)), part
