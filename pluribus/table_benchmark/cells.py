"""One cell of the benchmark: a contender is tuned on one split of one table, and the best of its trials is judged.

trials.json   the trials so far, so that a cell that was killed goes on; each draws from Optuna's TPE, seeded by its number
found.json    what the cell found; its presence says that the cell is finished

The first trial has the default options. The trial with the smallest RMSE on the validation rows is chosen; its scores on the
test rows are those of the cell. Training is timed in CPU seconds, which other work on the machine hardly changes, and
prediction in turns with the base: one network of ours with its default options, trained on the same rows in the same process.
"""

import math
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from ..analysis.timing import summarize_ratios, time_interleaved
from ..core.files import restore_number
from ..core.seeds import derive_seed
from ..data.dataset import Part
from ..file_formats.reading import read_json, write_json
from ..file_formats.table_benchmark_files import TrialsFile
from ..runs.pruning import quiet_optuna
from .contender import Contender, Limits, Options, Predict, Tuned
from .contenders import find_contender
from .rows import Rows, load_rows, unscale
from .scores import Gaussians, score_gaussians

Json = dict[str, Any]
FOUND, TRIALS = "found.json", "trials.json"
BASE = "single"
REPEATS, TIMED_ROWS, FEW = 5, 1000, 60
TUNING, TRAINING = 8, 9
"""Which streams of a split's seed the trials and the weights are drawn from."""


def run_cell(
    folder: str,
    table: Mapping[str, Any],
    title: str,
    split: int,
    contender: str,
    trials: int,
    limits: Limits,
    rows: int | None,
    data_dir: str | None,
) -> None:
    """Tune, judge and time one contender, and write what was found into the folder."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    found, data = find_contender(contender), load_rows(table, data_dir, split, rows)
    seed = derive_seed(split, TRAINING)
    warm_up(found, data)
    records, chosen, predict = tune(found, data, split, trials, limits, place / TRIALS)
    base_seconds, base = time_fit(find_contender(BASE), data, None, seed, limits)
    x = data.test.x[:TIMED_ROWS]
    timings = list(time_interleaved({"base": lambda: base(x), "own": lambda: predict(x)}, REPEATS))
    write_json(
        place / FOUND,
        {
            "table": title,
            "split": split,
            "contender": contender,
            "rows": {"train": len(data.train), "validation": len(data.validation), "test": len(data.test)},
            "trials": records,
            "chosen": chosen,
            "scores": records[chosen]["scores"],
            "train_seconds": records[chosen]["seconds"],
            "base_train_seconds": base_seconds,
            "predict": asdict(summarize_ratios([t["own"] for t in timings], [t["base"] for t in timings])),
        },
    )


def warm_up(contender: Contender, rows: Rows) -> None:
    """Fit the contender and the base to a few rows, so that no trial pays for importing libraries."""
    few = replace(rows, train=take_first(rows.train), validation=take_first(rows.validation))
    for each in (contender, find_contender(BASE)):
        each.fit(few, each.defaults, 0, Limits(1, 1, 2, 1))


def take_first(part: Part) -> Part:
    return part.take_rows(torch.arange(min(len(part), FEW)))


def tune(
    contender: Contender, rows: Rows, split: int, count: int, limits: Limits, place: Path
) -> tuple[list[Json], int, Predict]:
    """Run the trials that are not in the file yet, and return all, the number of the best one, and how it predicts."""
    records: list[Json] = read_json(place, TrialsFile)["trials"][:count] if place.is_file() else []
    seed, number = derive_seed(split, TUNING, zlib.crc32(contender.name.encode())), derive_seed(split, TRAINING)
    kept: tuple[int, Predict] | None = None
    while len(records) < count:
        options = draw_options(contender.space, records, derive_seed(seed, len(records)))
        seconds, predict = time_fit(contender, rows, options, number, limits)
        records.append({"options": options, "seconds": seconds} | judge(predict, rows))
        if choose_trial(records) == len(records) - 1:
            kept = len(records) - 1, predict
        write_json(place, {"trials": records})
    chosen = choose_trial(records)
    if kept is None or kept[0] != chosen:  # it was trained before a kill
        kept = chosen, time_fit(contender, rows, records[chosen]["options"], number, limits)[1]
    return records, chosen, kept[1]


def time_fit(contender: Contender, rows: Rows, options: Options | None, seed: int, limits: Limits) -> tuple[float, Predict]:
    """Fit a contender, with its default options unless others are given; return the CPU seconds that it took, too."""
    began = time.process_time()
    predict = contender.fit(rows, contender.defaults if options is None else options, seed, limits)
    return time.process_time() - began, predict


def judge(predict: Predict, rows: Rows) -> Json:
    """The RMSE on the validation rows, by which trials are chosen, and the scores on the test rows, in units of the targets."""
    validation, test = (restore_units(predict(part.x), rows) for part in (rows.validation, rows.test))
    y_validation, y_test = (unscale(part.y, rows) for part in (rows.validation, rows.test))
    error = (validation.mean - y_validation).square().mean().sqrt().item()
    return {"validation_rmse": error, "scores": score_gaussians(validation, y_validation, test, y_test)}


def restore_units(found: Gaussians, rows: Rows) -> Gaussians:
    """A prediction of standardised targets in the units of the targets."""
    return Gaussians(unscale(found.mean, rows), found.variance.double() * rows.target[1] ** 2)


def choose_trial(records: list[Json]) -> int:
    """The number of the trial with the smallest finite error on validation rows; 0 if there is none.

    >>> choose_trial([{"validation_rmse": 0.3}, {"validation_rmse": None}, {"validation_rmse": 0.2}])
    2
    """
    errors = [restore_number(record["validation_rmse"]) for record in records]
    usable = [number for number, error in enumerate(errors) if math.isfinite(error)]
    return min(usable, key=lambda number: (errors[number], number), default=0)


def draw_options(space: Mapping[str, Tuned], records: list[Json], seed: int) -> Options:
    """The options of the next trial: the default ones first, then what TPE draws from all trials before.

    The sampler is made anew for each trial, so that a cell that goes on after a kill draws what it would have drawn.
    """
    if not records:
        return {name: tuned.default for name, tuned in space.items()}
    with quiet_optuna() as optuna:
        kinds = {name: make_distribution(optuna, tuned) for name, tuned in space.items()}
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=5))
        for record in records:
            error = restore_number(record["validation_rmse"])
            state = optuna.trial.TrialState.COMPLETE if math.isfinite(error) else optuna.trial.TrialState.FAIL
            value = error if math.isfinite(error) else None
            options = record["options"]
            study.add_trial(optuna.trial.create_trial(state=state, value=value, params=options, distributions=kinds))
        return dict(study.ask(kinds).params)


def make_distribution(optuna: Any, tuned: Tuned) -> Any:
    if tuned.kind == "choice":
        return optuna.distributions.CategoricalDistribution(tuned.values)
    if tuned.kind == "int":
        return optuna.distributions.IntDistribution(*tuned.values)
    return optuna.distributions.FloatDistribution(*tuned.values, log=tuned.kind == "log")
