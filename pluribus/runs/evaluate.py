"""Judging a trained ensemble on rows, in parts, so that memory does not grow with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError
from ..core.modes import evaluating
from ..core.predictive import Predictive
from ..core.saving import load as load_ensemble
from ..core.seeds import mixed, reseed
from ..data import Columns, Data, load
from ..data.batches import Stored
from ..data.catalog import SETS
from ..data.dataset import Part
from ..data.preparation import Preparation
from ..data.table import SUFFIXES, read_table
from ..metrics.streaming import Tally
from ..models.registry import build
from . import config as configs
from .config import Config, ConfigError, configured
from .folder import Run

JUDGE = 7  # a place of the seed
ROWS = 512


@torch.no_grad()
def judged(ensemble: Ensemble, part: Part, data: Data, seed: int = 0, report: Any = None) -> dict[str, float]:
    """The scores on a part. Noise is drawn from the seed. `report` is told how many rows are done."""
    tally = Tally(ensemble.task)
    like = next(ensemble.parameters())
    with evaluating(ensemble), torch.random.fork_rng(devices=[]):
        for number, (x, y, _) in enumerate(Stored(part, min(ROWS, ensemble.at_once), data.preparation)):
            reseed(mixed(seed, JUDGE, number))
            outputs = ensemble(x.to(like.device, like.dtype))
            y = y.to(like.device)
            if ensemble.task == "regression":
                outputs, y = data.preparation.answers(outputs), data.preparation.answers(y)
            tally.add(Predictive(outputs, ensemble.task), y)
            if report is not None:
                report(len(y))
    return tally.scores()


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
    options = {key: tuple(v) if isinstance(v, list) else v for key, v in config.model.items() if key != "name"}
    with torch.random.fork_rng(devices=[]):
        net = build(config.model["name"], shape, outputs, **options)
    made = load_ensemble(run.weights, net)
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
        check_unchanged(data.limited(config.rows, config.seed), about)
    data = renamed(replace(data, preparation=preparation), about["classes"])
    if split == "validation" or (split == "train" and other is None):  # as the run itself divided them
        from .train import SPLIT

        kept, aside = data.limited(config.rows, config.seed).split(config.validation, mixed(config.seed, SPLIT))
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


def evaluate(
    path: Path, split: str = "test", other: str | None = None, samples: int | None = None, report: Any = None
) -> dict[str, Any]:
    """The scores of a run; also written to `evaluation.json` in its folder."""
    from .folder import opened

    run = opened(path)
    made, config, about, preparation = trained(run)
    if samples is not None:
        draw(made, samples)
    data, part = rows_of(config, about, preparation, split, other)
    if report is not None:
        report(0, len(part))
    scores = judged(made, part, data, config.seed, None if report is None else lambda rows: report(rows, None))
    whole = part is data.train and part is data.test
    about = {"run": run.path.name, "title": config.title(), "data": data.name, "split": "all" if whole else split}
    result = about | {"rows": len(part), "scores": scores}
    run.write_json("evaluation.json", result)
    return result
