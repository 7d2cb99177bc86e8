"""How the runs of a comparison were trained: learning curves for results.json, and a note on runs that were stopped early."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..file_formats.comparison_files import MOST_POINTS
from ..file_formats.digests import digest_file
from ..file_formats.run_files import read_metrics
from ..file_formats.schema import RUN_CURE
from ..runs.config import read_config
from ..runs.run_folder import Run
from ..training.phases import SCORES
from .statistics import summarize_seeds

Json = dict[str, Any]


def count_epochs(results: Sequence[Mapping[str, Any]]) -> float:
    """The mean number of epochs of runs, by their results; a whole number if all have the same.

    >>> count_epochs([{"epochs": 12}, {"epochs": 12}]), count_epochs([{"epochs": 12}, {"epochs": 15}])
    (12, 13.5)
    """
    counts = [result["epochs"] for result in results]
    return counts[0] if len(set(counts)) == 1 else sum(counts) / len(counts)


def add_training(methods: list[Json], path: Path) -> None:
    """Add `training` to the entry of each method: the validation score of its runs after every epoch, and how they ended.

    Args: entries of results.json with the names of their `runs`, which are folders in `path`. The score is the first of
    calibrated NLL, NLL and RMSE that all runs have. Without validation rows there is none, and `training` is None.
    """
    histories = {name: read_history(Run(path / name)) for method in methods for name in method["runs"]}
    known = [name for name in SCORES if all(any(name in row for row in rows) for rows in histories.values())]
    for method in methods:
        runs = [Run(path / name) for name in method["runs"]]
        results = [run.read_json("result.json") for run in runs]
        if not known:
            method["training"] = None
            continue
        pairs = zip(runs, results, strict=True)
        method["training"] = {
            "score": known[0].removeprefix("validation_"),
            "epochs": summarize_seeds([result["epochs"] for result in results]),
            "curves": [describe_curve(run, histories[run.path.name], known[0], result) for run, result in pairs],
        }


def read_history(run: Run) -> list[dict[str, float]]:
    """The rows of the metrics.csv of a finished run. Raises FileError if it is missing, or changed since it was written."""
    place = run.metrics
    if not place.is_file():
        raise FileError(f"{place} is missing: {RUN_CURE}")
    rows, result = read_metrics(place), run.read_json("result.json")
    if len(rows) != result["epochs"]:
        raise FileError(f"{place} is damaged: it has {len(rows):,} epochs, and the run had {result['epochs']:,}: {RUN_CURE}")
    if result.get("metrics") not in (None, digest_file(place)):
        raise FileError(f"{place} was changed since it was written: {RUN_CURE}")
    return rows


def describe_curve(run: Run, history: list[dict[str, float]], score: str, result: Json) -> Json:
    """The learning curve of one run, for results.json."""
    rows = thin_rows([row for row in history if score in row and row["epoch"] >= 0 and math.isfinite(row["epoch"])])
    return {
        "seed": read_config(run.config).seed,
        "epochs": [int(row["epoch"]) for row in rows],
        "scores": [row[score] for row in rows],
        "decay_from": result.get("decay_from"),
        "still_improving": result.get("still_improving"),
    }


def thin_rows(rows: list[Any], most: int = MOST_POINTS) -> list[Any]:
    """At most so many of the rows: every second (third, …), so that runs of other lengths keep the same epochs, and the last.

    >>> thin_rows([0, 1, 2, 3, 4], 3)
    [0, 3, 4]
    """
    if len(rows) <= most:
        return rows
    return [*rows[: -1 : -(-len(rows) // (most - 1))], rows[-1]]


def note_still_improving(methods: list[Json], settings: Mapping[str, Any]) -> list[str]:
    """A note on the methods that were still improving when they were stopped; `settings` are those that all runs share."""
    named, stopped = [], []
    for method in methods:
        curves = (method.get("training") or {}).get("curves") or []
        open_ended = [curve for curve in curves if curve["still_improving"]]
        if open_ended:
            few = f" ({len(open_ended)} of {len(curves)} seeds)" if len(open_ended) < len(curves) else ""
            named.append(method["name"] + few)
            stopped += [max(curve["epochs"], default=0) for curve in open_ended]
    if not named:
        return []
    whole = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    one = len(named) == 1
    count = f"{min(stopped)}" if min(stopped) == max(stopped) else f"{min(stopped)} to {max(stopped)}"
    flag = "--max-epochs" if settings.get("epochs") == "auto" else "--epochs"
    was, it = ("was", "it was") if one else ("were", "they were")
    return [f"{whole} {was} still improving when {it} stopped after {count} epochs: raise {flag}."]
