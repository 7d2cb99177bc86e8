"""Judging a finished run from every side."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from ..analysis.cost import compare_cost
from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError
from ..core.files import write_file
from ..data import Data
from ..data.dataset import Part
from ..data.preparation import Preparation
from .answers import Case
from .config import Config, ConfigError
from .folder import Run, opened
from .judging import Judging, asked, judgement
from .opening import draw, network, rows_of, trained
from .shift import mce, shift

KEPT = ("nll", "right", "brier", "square")
"""Of every row, for comparisons."""
BATCH = 64
"""Rows of an answer whose time and memory are measured."""

Report = Callable[[int, int | None], None]


def evaluate(
    path: Path,
    split: str = "test",
    other: str | None = None,
    samples: int | None = None,
    judging: Judging | None = None,
    base: Path | None = None,
    costs: bool = False,
    report: Report | None = None,
) -> dict[str, Any]:
    """All that is asked for; also written to `evaluation.json` in the run's folder. `base` is a run to compare errors with."""
    run, judging = opened(path), judging or asked()
    made, config, about, preparation = trained(run)
    if samples is not None:
        draw(made, samples)
    data, part = rows_of(config, about, preparation, split, other)
    judging.check(data, config.data_dir)
    aside = None
    if split != "validation":
        with contextlib.nullcontext() if other is None else contextlib.suppress(DataError, FileError):
            aside = held_aside(config, about, preparation)
    if report is not None:
        report(0, judging.rows(len(part), len(aside) if aside else 0))
    case = Case(made, data, part, config.seed, None if report is None else lambda rows: report(rows, None))
    whole = part is data.train and part is data.test
    result = {"run": run.path.name, "title": config.title(), "data": data.name, "split": "all" if whole else split}
    told, _ = judgement(case, aside, judging, config.data_dir)
    if told.get("shift"):
        told["shift"]["mce"] = mce(told["shift"], base_shift(base, case, judging)) if base is not None else None
    result |= told | {"cost": measured(made, config, data, part) if costs else None}
    run.write_json("evaluation.json", result)
    return result


def held_aside(config: Config, about: dict[str, Any], preparation: Preparation) -> Part | None:
    """The validation rows of the run, whatever it is judged by."""
    if not config.validation:
        return None
    return rows_of(config, about, preparation, "validation", None)[1]


def base_shift(path: Path, case: Case, judging: Judging) -> dict[str, Any]:
    """The corruption errors of another run on the same images."""
    made, config, about, preparation = trained(opened(path))
    if tuple(about["shape"]) != case.data.shape or about["classes"] != list(case.data.classes):
        raise ConfigError(f"{path} learnt {about['name']}, which has other images or classes: choose a base of the same data")
    data = replace(case.data, preparation=preparation)
    return shift(Case(made, data, case.part, config.seed, case.report), judging.shift_rows)


def measured(made: Ensemble, config: Config, data: Data, part: Part) -> dict[str, Any]:
    """What it costs on a batch of these rows."""
    few = part.rows(torch.arange(min(BATCH, len(part))))
    like = next(made.parameters())
    x, y = data.preparation(few.x).to(like.device, like.dtype), data.preparation.scale_targets(few.y).to(like.device)
    with torch.random.fork_rng(devices=[]):
        net = network(config, data.shape, data.outputs).to(like.device, like.dtype)
    found = compare_cost(made, net, x, y)
    return asdict(found) | {"latency": found.latency._asdict(), "passes": found.passes}


def rows_to_compare(config: Config, about: dict[str, Any], preparation: Preparation) -> tuple[Data, Part, Part | None]:
    """The test rows and the validation rows. Without test rows, half of the validation rows each: none may do both."""
    if about["test"]:
        data, part = rows_of(config, about, preparation, "test", None)
        return data, part, held_aside(config, about, preparation)
    data, part = rows_of(config, about, preparation, "validation", None)
    if len(part) < 2:
        raise ConfigError(f"{data.name} has no test rows, and {len(part)} validation row: too few to judge by")
    return data, part.rows(torch.arange(0, len(part), 2)), part.rows(torch.arange(1, len(part), 2))


def judge(path: Path, judging: Judging) -> None:
    """What a comparison needs of a finished run: judgement.json, and rows.safetensors to pair runs by."""
    run = Run(path)
    made, config, about, preparation = trained(run)
    data, part, aside = rows_to_compare(config, about, preparation)
    told, kept = judgement(Case(made, data, part, config.seed), aside, judging, config.data_dir)
    table = {name: column.float().contiguous() for name, column in kept.table().items() if name in KEPT}
    write_file(run.path / "rows.safetensors", safetensors.torch.save(table))
    run.write_json("judgement.json", told)  # last: where it is, the run is judged
