"""The content of results.json, collected from the finished runs of a comparison; `pluribus.reports` describes it."""

import inspect
from pathlib import Path
from typing import Any

import torch

from ..core.spec import Spec
from ..file_formats.evaluation_files import check_alike
from ..runs.config import read_config
from ..runs.grid import Cell, Grid
from ..runs.run_folder import Run
from .budgets import TEXTS
from .notes import (
    describe_equivalences,
    describe_not_finite,
    describe_unpaired,
    note_failures,
    note_missing_share,
    note_short_runs,
)
from .recommendation import recommend
from .roles import find_baseline, find_reference, group_finished
from .statistics import PairedBootstrap, combine_seeds, read_row_scores, summarize_seeds
from .students import describe_students

Json = dict[str, Any]


def collect_results(grid: Grid, about: Json, costs: Json) -> Json:
    """Everything that results.json holds.

    Args: the grid of runs, of which those that are finished count; the content of compare.yaml; the cost of each method.
    """
    finished, base = group_finished(grid), find_baseline(grid)
    judged = {
        method: {cell.seed: Run(grid.path / cell.name).read_json("judgement.json") for cell in cells}
        for method, cells in finished.items()
    }
    check_alike(grid.path, judged)
    draws = {name: draw_pairs(grid, finished, name) for name in ("nll", "right", "brier", "square")}
    nll = draws["nll"]
    left = [name for name in finished if nll is not None and name not in nll.values]
    methods = [describe_method(grid, name, cells, judged, costs.get(name), draws) for name, cells in finished.items()]
    notes = [*about["notes"], *describe_students(methods, about["budget"]), *note_short_runs(grid, finished)]
    notes += [*describe_unpaired(left), *describe_not_finite(judged)]
    facts = Run(grid.path / next(iter(finished.values()))[0].name)
    data = facts.read_json("data.json")
    config = read_config(facts.config)
    model = config.model["name"].strip("<>") if config.model else ""
    return {
        "format": 1,
        "title": f"{data['name']} · {model}",
        "command": about["command"],
        "data": {key: data[key] for key in ("name", "task", "classes", "shape", "train", "test")},
        "judged_by": "test" if data["test"] else "validation",
        "model": model,
        "budget": {"kind": about["budget"], "text": TEXTS[about["budget"]]},
        "seeds": sorted({cell.seed for cell in grid.cells}),
        "settings": find_common_settings(grid) | {"judging": about["judging"]},
        "seconds": round(sum(method["seconds"]["mean"] * len(method["runs"]) for method in methods), 1),
        "methods": methods,
        "recommendation": recommend(methods, nll, base) if nll else [],
        "notes": [
            *(*notes, *note_missing_share(nll, find_reference(grid), base)),
            *(*describe_equivalences(methods), *note_failures(grid)),
        ],
    } | facts.read_json("about.json")


def find_common_settings(grid: Grid) -> Json:
    """The settings that all runs share."""
    options = [cell.options for cell in grid.cells]
    return {
        key: Path(str(value)).name if key == "data_dir" and value else value
        for key, value in options[0].items()
        if key not in ("method", "seed", "teacher") and all(each[key] == value for each in options)
    }


def draw_pairs(grid: Grid, finished: dict[str, list[Cell]], column: str) -> PairedBootstrap | None:
    """The bootstrap over the methods that have finite row scores for all seeds of the baseline."""
    base = find_baseline(grid)
    rows = {
        method: {cell.seed: table[column] for cell in cells if column in (table := read_row_scores(grid.path / cell.name))}
        for method, cells in finished.items()
    }
    seeds = sorted(rows.get(base, {}))
    sound = {
        method: {seed: each[seed] for seed in seeds}
        for method, each in rows.items()
        if all(seed in each and bool(torch.isfinite(each[seed]).all()) for seed in seeds)
    }
    if not seeds or base not in sound:
        return None
    shared = bool(Run(grid.path / finished[base][0].name).read_json("data.json")["test"])
    return PairedBootstrap(sound, shared=shared)


def describe_method(
    grid: Grid, name: str, cells: list[Cell], judged: Json, cost: Json | None, draws: dict[str, PairedBootstrap | None]
) -> Json:
    """The entry of one method in results.json."""
    base, reference = find_baseline(grid), find_reference(grid)
    results = [Run(grid.path / cell.name).read_json("result.json") for cell in cells]
    config = read_config(Run(grid.path / cells[0].name).config)
    found = combine_seeds(judged[name], judged.get(base, {}))
    for score, column in (("nll", "nll"), ("accuracy", "right"), ("brier", "brier")):
        drawn = draws[column]
        if drawn and name in drawn.values and score in found["scores"]:
            interval = drawn.interval(name)
            found["scores"][score] |= {"low": interval.low, "high": interval.high}
    nll = draws["nll"]
    known = nll.values if nll else {}
    gain = nll.gain(name, base) if nll and name in known and base in known and name != base else None
    share = nll.share(name, base, reference) if nll and gain and reference in known else None
    doc = inspect.getdoc(Spec.registry[config.spec.name]) or ""
    if cost is not None and cost["training_flops"] is not None:  # one step was measured; the ratio is of all steps
        epochs = results[0]["epochs"] / count_base_epochs(grid, results[0])
        cost = cost | {"training_flops": cost["training_flops"] * epochs}
    return {
        "name": name,
        "spec": str(config.spec),
        "about": doc.splitlines()[0] if doc else "",
        "equivalence": config.spec.describe_equivalence(config.optimizer, config.rate, config.decay, results[0]["steps"]),
        "epochs": results[0]["epochs"],
        "model": config.model,
        "teacher": config.teacher["method"] if config.teacher else None,
        **found,
        "gain": gain._asdict() if gain else None,
        "share": share._asdict() if share else None,
        "cost": cost,
        "seconds": summarize_seeds([result["seconds"] for result in results]),
        "runs": [cell.name for cell in cells],
    }


def count_base_epochs(grid: Grid, otherwise: Json) -> int:
    """The epochs of the baseline."""
    cells = group_finished(grid).get(find_baseline(grid))
    return (Run(grid.path / cells[0].name).read_json("result.json") if cells else otherwise)["epochs"]
