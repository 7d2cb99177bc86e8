"""The folder of a run, which all other commands read.

config.yaml          the configuration; `pluribus train --config` runs it again
about.json           versions and machine
data.json            how rows become inputs, and the names of the classes
metrics.csv          one row for each epoch
checkpoints/         to resume from
weights.safetensors  the trained ensemble (and weights.json, which is readable)
result.json          the test scores; its presence says that the run is finished
evaluation.json      the results of `pluribus evaluate`; with other options evaluation-….json
calibration.json     the rules that `pluribus calibrate` fits: sets, intervals, when not to answer, alarms
calibration.safetensors  what an alarm by the distance of features knows of the training rows
judgement.json       the same, for a comparison, with rows.safetensors: a few numbers of every test row
trial.json           of a trial of `compare --tune`, which has no weights and no scores of test rows: how it ended
"""

import contextlib
import csv
import hashlib
import io
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from ..core.errors import FileError
from ..core.file_names import LONGEST, check_inside
from ..core.files import write_file
from ..file_formats.calibration_files import CalibrationRecord
from ..file_formats.evaluation_files import EvaluationRecord, Judgement
from ..file_formats.reading import read_json, write_json
from ..file_formats.run_files import About, DataRecord, Result
from ..file_formats.schema import Schema
from ..file_formats.tuning_files import TrialRecord

FEW_STEPS = 300
"""A run of fewer steps is reported as possibly too short."""
RECORDS: dict[str, type[Schema]] = {
    "about.json": About,
    "data.json": DataRecord,
    "result.json": Result,
    "evaluation.json": EvaluationRecord,
    "judgement.json": Judgement,
    "trial.json": TrialRecord,
    "calibration.json": CalibrationRecord,
}
PACKAGES = ("pluribus", "torch", "lightning", "numpy", "safetensors", "pydantic")


@dataclass(frozen=True)
class Run:
    """The folder of a run; it need not exist yet."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def weights(self) -> Path:
        return self.path / "weights.safetensors"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def is_finished(self) -> bool:
        return (self.path / "result.json").is_file()

    @property
    def is_judged(self) -> bool:
        """Whether it was evaluated for a comparison."""
        return (self.path / "judgement.json").is_file() and self.row_scores.is_file()

    @property
    def is_tried(self) -> bool:
        """Whether it is a trial of a tuning that has ended."""
        return (self.path / "trial.json").is_file()

    @property
    def row_scores(self) -> Path:
        return self.path / "rows.safetensors"

    def create(self) -> None:
        """Create the folder. Raises FileError if that fails, or if a link in it leads elsewhere."""
        for name in ("checkpoints", "tensorboard", ".lock"):
            check_inside(self.path / name, self.path)
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {self.path}: {error.strerror}; name another with --out") from error

    @contextlib.contextmanager
    def lock(self, wait: bool) -> Iterator[None]:
        """A lock on the folder: one process at a time works in a run. It is released when the process ends in any way."""
        held = FileLock(self.path / ".lock", timeout=-1 if wait else 0)
        try:
            held.acquire()
        except Timeout:
            raise FileError(f"another process is working in {self.path}: let it finish, or stop it") from None
        try:
            yield
        finally:
            held.release()

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a record with its digest."""
        write_json(self.path / name, content)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a record of the run. Raises FileError if it is missing, damaged, or changed since it was written."""
        if not (self.path / name).is_file():
            raise FileError(f"{self.path} is no finished run: it has no {name}")
        return read_json(self.path / name, RECORDS[name])

    def write_metrics(self, rows: list[dict[str, float]]) -> None:
        if not rows:
            return
        names = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO()
        table = csv.DictWriter(text, names)
        table.writeheader()
        table.writerows(rows)
        write_file(self.metrics, text.getvalue())


def name_evaluation(split: str, options: Mapping[str, Any]) -> str:
    """The file of an evaluation: evaluation.json, or with options a name that has them, so that none replaces another.

    >>> name_evaluation("test", {"samples": None}), name_evaluation("validation", {"samples": 50})
    ('evaluation.json', 'evaluation-validation-samples-50.json')
    >>> name_evaluation("test", {"corruptions": "standard", "ood": ("svhn", "photos/night.npz")})
    'evaluation-corruptions-standard-ood-svhn-photos-night.npz.json'
    """
    parts: list[Any] = [] if split == "test" else [split]
    for key, value in options.items():
        if value is not None:
            parts += [key, *(value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else [value])]
    text = "-".join(re.sub(r"[^\w.]+", "-", str(part)).strip("-.") for part in parts)
    if len(text.encode()) > LONGEST // 2:
        text = f"{text[:40]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return f"evaluation-{text}.json" if text else "evaluation.json"


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open the run in a folder. Raises FileError if the folder holds none."""
    run = Run(Path(path))
    if not run.path.exists():
        raise FileError(f"there is no run {run.path}")
    if not run.path.is_dir():
        raise FileError(f"{run.path} is a file: name the folder of a run")
    if not run.config.is_file():
        raise FileError(f"{run.path} is no run: it has no config.yaml")
    return run


def name_new_folder(parent: Path, title: str) -> Path:
    """A folder name that is not taken: the title and the time."""
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in title)
    stem = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = parent / stem, 1
    while path.exists():
        number += 1
        path = parent / f"{stem}-{number}"
    return path


@cache
def read_versions() -> dict[str, str]:
    """The versions of the packages that matter, where they are installed; they are read once, because that takes a while."""
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def describe_machine() -> dict[str, Any]:
    """Versions and hardware, without anything that identifies the machine or its owner."""
    return {
        "versions": {"python": platform.python_version()} | read_versions(),
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        },
    }
