"""The content of results.json, collected from the finished runs of a comparison; `pluribus.reports` describes it."""

import inspect
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.spec import Spec
from ..file_formats.evaluation_files import check_alike
from ..runs.choices import format_choice
from ..runs.config import build_spec, read_config
from ..runs.evaluation import ROW_SCORES, SUB_ENSEMBLE_SCORES
from ..runs.grid import Cell, Grid
from ..runs.run_folder import Run
from .budgets import describe_budget
from .equivalents import EquivalentsCurve, estimate_latency
from .learning_curves import add_training, count_epochs, note_still_improving
from .notes import (
    describe_equivalences,
    describe_not_finite,
    describe_unpaired,
    describe_unsteady_latencies,
    note_caveats,
    note_failures,
    note_missing_share,
    note_short_runs,
)
from .recommendation import recommend
from .roles import find_baseline, find_reference, group_finished
from .statistics import PairedBootstrap, combine_seeds, read_row_scores, summarize_seeds
from .students import describe_students

Json = dict[str, Any]
SCORE_RANGES = {"accuracy": (0.0, 1.0), "nll": (0.0, math.inf), "calibrated_nll": (0.0, math.inf), "brier": (0.0, 2.0)}
"""What scores of a classification can be: Student's t of few seeds reaches beyond."""


def collect_results(grid: Grid, about: Json, costs: Json) -> Json:
    """Everything that results.json holds.

    Args: the grid of runs, of which those that are finished count; the content of compare.yaml; the cost of each method.
    """
    finished, base, reference = group_finished(grid), find_baseline(grid), find_reference(grid)
    judged = {
        method: {cell.seed: Run(grid.path / cell.name).read_json("judgement.json") for cell in cells}
        for method, cells in finished.items()
    }
    check_alike(grid.path, judged)
    rows = {method: {cell.seed: read_row_scores(grid.path / cell.name) for cell in cells} for method, cells in finished.items()}
    is_shared = bool(Run(grid.path / next(iter(finished.values()))[0].name).read_json("data.json")["test"])
    draws = {name: draw_pairs(rows, name, base, reference, is_shared) for name in ROW_SCORES}
    decider, old = choose_decider(rows)
    nll = draws[decider]
    curve = find_curve(nll, reference) if nll and decider == "calibrated_nll" else None
    left = [name for name in finished if nll is not None and name not in nll.values]
    methods = [describe_method(grid, name, cells, judged, costs.get(name), draws, decider) for name, cells in finished.items()]
    add_training(methods, grid.path)
    for method in methods:
        is_known = curve is not None and method["name"] in curve.draws.values
        method["equivalents"] = curve.measure(method["name"]) if curve is not None and is_known else None
    settings = find_common_settings(grid)
    notes = [*about["notes"], *describe_students(methods, about["budget"]), *note_still_improving(methods, settings)]
    notes += [*note_short_runs(grid, finished), *note_caveats(grid, finished)]
    notes += [*describe_unpaired(left), *describe_not_finite(judged), *old]
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
        "decided_by": decider if nll else None,
        "model": model,
        "budget": {"kind": about["budget"], "text": describe_budget(about["budget"], settings)},
        "seeds": sorted({cell.seed for cell in grid.cells}),
        "settings": settings | {"judging": about["judging"]},
        "seconds": round(sum(method["seconds"]["mean"] * len(method["runs"]) for method in methods), 1),
        "methods": methods,
        "reference_curve": curve.describe(reference, find_latency(costs.get(reference))) if curve else None,
        "recommendation": recommend(methods, nll, base, curve, list_smaller(grid, curve, costs), decider) if nll else [],
        "notes": [
            *(*notes, *note_missing_share(nll, reference, base), *describe_unsteady_latencies(methods)),
            *(*describe_equivalences(methods), *note_failures(grid)),
        ],
    } | facts.read_json("about.json")


def choose_decider(rows: dict[str, dict[int, dict[str, Tensor]]]) -> tuple[str, list[str]]:
    """The row score that decides: the calibrated NLL, or the plain one, with a note, if any run is without it."""
    tables = [table for seeds in rows.values() for table in seeds.values() if "nll" in table]
    if all("calibrated_nll" in table for table in tables):
        return "calibrated_nll", []
    text = (
        "An older version judged some runs without the calibrated NLL: the plain NLL decides. Delete their judgement.json and "
    )
    return "nll", [text + "resume, and they are judged again."]


def name_size(reference: str, size: int) -> str:
    """What a sub-ensemble of the reference is called among the rows."""
    return f"{reference}[{size}]"


def find_curve(draws: PairedBootstrap, reference: str) -> EquivalentsCurve | None:
    """The curve of the reference, if its runs were judged with their sub-ensembles."""
    sizes: list[str] = []
    while name_size(reference, len(sizes) + 1) in draws.values:
        sizes.append(name_size(reference, len(sizes) + 1))
    # All members are the reference itself: then it has the NLL of the curve's end to the last digit.
    return EquivalentsCurve(draws, (*sizes[:-1], reference)) if sizes and reference in draws.values else None


def list_smaller(grid: Grid, curve: EquivalentsCurve | None, costs: Json) -> list[Json]:
    """Ensembles of two or more, but not all, of the reference's networks, which may be recommended too."""
    reference = find_reference(grid)
    cost = costs.get(reference)
    if curve is None or cost is None:
        return []
    choice = next(cell.options["method"] for cell in grid.cells if cell.method == reference)
    size_option = build_spec(choice).size_option or ""
    finished, found = group_finished(grid), []
    for size in range(2, curve.most):
        title = format_choice(choice | {size_option: size})
        if title not in finished:
            latency = {key: estimate_latency(value, size, curve.most) for key, value in cost["latency"].items()}
            remark = f"Its score is the mean over groups of {size} of the {curve.most} networks of {reference}."
            found.append({"name": curve.sizes[size - 1], "title": title, "remark": remark, "cost": {"latency": latency}})
    return found


def find_latency(cost: Json | None) -> float | None:
    """The latency of a method as a ratio to the base network, if it was measured."""
    return cost["latency"]["value"] if cost else None


def find_common_settings(grid: Grid) -> Json:
    """The settings that all runs share."""
    options = [cell.options for cell in grid.cells]
    return {
        key: Path(str(value)).name if key == "data_dir" and value else value
        for key, value in options[0].items()
        if key not in ("method", "seed", "teacher") and all(each[key] == value for each in options)
    }


def draw_pairs(
    tables: dict[str, dict[int, dict[str, Tensor]]], column: str, base: str, reference: str, is_shared: bool
) -> PairedBootstrap | None:
    """The bootstrap over the methods that have a finite score of every row for all seeds of the baseline.

    The sub-ensembles of the reference are among them, named by `name_size`. `is_shared`: all seeds have the same rows.
    """
    rows = {
        method: {seed: table[column] for seed, table in seeds.items() if column in table} for method, seeds in tables.items()
    }
    for seed, table in tables.get(reference, {}).items():
        for name, values in table.items():
            part = SUB_ENSEMBLE_SCORES.fullmatch(name)
            if part and part[1] == column:
                rows.setdefault(name_size(reference, int(part[2])), {})[seed] = values
    seeds = sorted(rows.get(base, {}))
    sound = {
        method: {seed: each[seed] for seed in seeds}
        for method, each in rows.items()
        if all(seed in each and bool(torch.isfinite(each[seed]).all()) for seed in seeds)
    }
    if not seeds or base not in sound:
        return None
    return PairedBootstrap(sound, shared=is_shared)


def describe_method(
    grid: Grid,
    name: str,
    cells: list[Cell],
    judged: Json,
    cost: Json | None,
    draws: dict[str, PairedBootstrap | None],
    decider: str,
) -> Json:
    """The entry of one method in results.json."""
    base, reference = find_baseline(grid), find_reference(grid)
    results = [Run(grid.path / cell.name).read_json("result.json") for cell in cells]
    config = read_config(Run(grid.path / cells[0].name).config)
    found = combine_seeds(judged[name], judged.get(base, {}))
    possible = SCORE_RANGES if "accuracy" in found["scores"] else {}
    for score, column in (("nll", "nll"), ("calibrated_nll", "calibrated_nll"), ("accuracy", "right"), ("brier", "brier")):
        drawn = draws[column]
        if drawn and name in drawn.values and score in found["scores"]:
            interval, (least, most) = drawn.interval(name), possible.get(score, (-math.inf, math.inf))
            found["scores"][score] |= {"low": max(interval.low, least), "high": min(interval.high, most)}
    nll = draws[decider]
    known = nll.values if nll else {}
    gain = nll.gain(name, base) if nll and name in known and base in known and name != base else None
    share = nll.share(name, base, reference) if nll and gain and reference in known else None
    doc = inspect.getdoc(Spec.registry[config.spec.name]) or ""
    if cost is not None and cost["training_flops"] is not None:  # one step was measured; the ratio is of all steps
        epochs = count_epochs(results) / count_base_epochs(grid, results)
        cost = cost | {"training_flops": cost["training_flops"] * epochs}
    return {
        "name": name,
        "spec": str(config.spec),
        "about": doc.splitlines()[0] if doc else "",
        "equivalence": config.spec.describe_equivalence(config.optimizer, config.rate, config.decay, results[0]["steps"]),
        "epochs": count_epochs(results),
        "model": config.model,
        "teacher": config.teacher["method"] if config.teacher else None,
        **found,
        "gain": gain._asdict() if gain else None,
        "share": share._asdict() if share else None,
        "cost": cost,
        "seconds": summarize_seeds([result["seconds"] for result in results]),
        "runs": [cell.name for cell in cells],
    }


def count_base_epochs(grid: Grid, otherwise: list[Json]) -> float:
    """The epochs of the baseline, the mean over its runs."""
    cells = group_finished(grid).get(find_baseline(grid))
    return count_epochs([Run(grid.path / cell.name).read_json("result.json") for cell in cells] if cells else otherwise)
