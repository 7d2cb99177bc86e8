"""Judging a finished run from every side."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from ..analysis.cost import cost
from ..core.ensemble import Ensemble
from ..core.files import write
from ..data import Data
from ..data.dataset import Part
from .answers import Case
from .config import Config
from .folder import Run, opened
from .judging import Judging, asked, judgement
from .opening import divided, draw, network, rows_of, trained
from .shift import mce

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
    judging.check(data)
    aside = held_aside(config, data) if split == "test" and other is None else None
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


def held_aside(config: Config, data: Data) -> Part | None:
    """The validation rows of the run."""
    if not config.validation or not len(data.train):
        return None
    return divided(config, data.limited(config.rows, config.seed))[1]


def base_shift(path: Path, case: Case, judging: Judging) -> dict[str, Any]:
    """The corruption errors of another run on the same images."""
    from .shift import shift

    made, config, _, _ = trained(opened(path))
    return shift(Case(made, case.data, case.part, config.seed, case.report), judging.shift_rows)


def measured(made: Ensemble, config: Config, data: Data, part: Part) -> dict[str, Any]:
    """What it costs on a batch of these rows."""
    few = part.rows(torch.arange(min(BATCH, len(part))))
    like = next(made.parameters())
    x, y = data.preparation(few.x).to(like.device, like.dtype), data.preparation.scaled(few.y).to(like.device)
    with torch.random.fork_rng(devices=[]):
        net = network(config, data.shape, data.outputs).to(like.device, like.dtype)
    found = cost(made, net, x, y)
    return asdict(found) | {"latency": found.latency._asdict(), "passes": found.passes}


def judge(path: Path, judging: Judging) -> None:
    """What a comparison needs of a finished run: judgement.json, and rows.safetensors to pair runs by."""
    run = Run(path)
    made, config, about, preparation = trained(run)
    data, part = rows_of(config, about, preparation, "test" if about["test"] else "validation", None)
    aside = held_aside(config, data) if about["test"] else None  # one does not fit a temperature by the rows to judge by
    told, kept = judgement(Case(made, data, part, config.seed), aside, judging, config.data_dir)
    names = ("nll", "right", "brier", "confidence") if data.task == "classification" else ("nll", "square")
    table = kept.table()
    write(run.path / "rows.safetensors", safetensors.torch.save({name: table[name].float().contiguous() for name in names}))
    run.write_json("judgement.json", told)  # last: where it is, the run is judged
