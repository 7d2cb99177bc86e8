"""The teacher of a run: a finished run whose members a student learns from.

A configuration names it by `teacher`: the folder of the run (`run`), and, once training has begun, its method and a digest of
its weights, by which a resumed run finds out whether it is still the same. A relative folder is seen from the student's own
folder: so the runs of a comparison, which lie side by side, may be moved together.
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..core.ensemble import Ensemble
from ..core.errors import FileError
from ..data import Data
from ..training.distillation import Teacher
from .choices import format_choice
from .config import Config, ConfigError, name_student, read_config
from .loading import load_run
from .run_folder import Run, open_run


@dataclass(frozen=True, eq=False)
class RunTeacher:
    """The trained ensemble of a teacher's run, and the entry `teacher` of the student's configuration."""

    ensemble: Ensemble
    entry: dict[str, Any]


def load_teacher(config: Config, folder: Path, data: Data) -> RunTeacher | None:
    """Load the teacher that a configuration names, for a student that is trained in `folder` on `data`; None if there is none.

    Raises:
        FileError: there is no such run, it is not finished or damaged, or its weights are not those that the run began with.
        ConfigError: the teacher was trained on other data, answers with more than means, or is the student itself.
        ConsentError: its network is a factory that the user has not consented to.
    """
    if config.teacher is None:
        return None
    place = find_teacher(config.teacher, folder)
    with torch.random.fork_rng(devices=[]):  # what loading draws must not change what the student draws
        ensemble, own, about, _ = load_run(open_run(place))
    check_same_data(place, about, data)
    if ensemble.distribution is not None:
        raise ConfigError(
            f"the teacher in {place} answers with {ensemble.distribution.answers}, and a student learns means alone: name a "
            f"run without {ensemble.distribution.option}"
        )
    digest = Teacher(ensemble).digest
    begun = read_config(Run(folder).config).teacher if Run(folder).config.is_file() else None
    for known in (config.teacher.get("digest"), (begun or {}).get("digest")):
        if known not in (None, digest):
            raise FileError(f"the weights of the teacher in {place} are not those that the run began with: bring them back")
    if (own.seed, own.validation, own.rows) != (config.seed, config.validation, config.rows) and config.validation:
        warnings.warn(
            f"the teacher in {place} was trained with another seed, validation share or number of rows: it has learnt rows "
            "that the student is validated on, so that validation scores are too good",
            stacklevel=2,
        )
    method = {"method": name_student(format_choice(own.method), own.teacher)}
    return RunTeacher(ensemble, method | config.teacher | {"digest": digest})


def find_teacher(entry: Mapping[str, Any], folder: Path) -> Path:
    """The folder of the teacher of a run in `folder`. Raises FileError if it is missing, ConfigError if it is that run."""
    place = (folder.resolve() / entry["run"]).resolve()  # the folder of a new run does not exist yet, so that `..` is resolved
    if place == folder.resolve():
        raise ConfigError(f"{folder} cannot be its own teacher: name the folder of another run")
    if not place.is_dir():
        raise FileError(
            f"the teacher's run {place} is missing: bring it back, or name its new place with --teacher (also with --resume)"
        )
    return place


def check_same_data(place: Path, about: Mapping[str, Any], data: Data) -> None:
    """Raise ConfigError unless a run was trained on rows of the same shape and classes, prepared in the same way."""
    prepared = json.loads(json.dumps(data.preparation.to_json()))
    now = {"task": data.task, "shape": list(data.shape), "classes": list(data.classes), "preparation": prepared}
    for what, found in now.items():
        if json.loads(json.dumps(about[what])) != found:
            raise ConfigError(
                f"the teacher in {place} was trained on {about['name']}, and {data.name} differs from it in its {what}: a "
                "teacher must know the same data"
            )
