"""The caveats of a comparison, one sentence each."""

from typing import Any

from ..runs.config import find_role
from ..runs.grid import Cell, Grid
from ..runs.run_folder import FEW_STEPS, Run
from .statistics import PairedBootstrap

MANY_METHODS = 5
UNSTEADY = 1.5
"""By what factor the repeats of a latency may differ before the page warns: on a quiet machine it is below 1.1."""
Json = dict[str, Any]


def note_missing_share(nll: PairedBootstrap | None, best: str, base: str) -> list[str]:
    """A note if no method has a share, because the reference gains nothing."""
    if nll is None or not {base, best} <= set(nll.values) or nll.gain(best, base).low > 0:
        return []
    return [f"{best} gains nothing beyond the noise here: what share of its gain a method keeps cannot be said."]


def note_short_runs(grid: Grid, finished: dict[str, list[Cell]]) -> list[str]:
    """A note if runs took so few steps that slow methods are not at their best."""
    runs = [Run(grid.path / cells[0].name) for cells in finished.values() if cells[0].options["epochs"] != "auto"]
    steps = [run.read_json("result.json")["steps"] for run in runs]
    if not steps or min(steps) >= FEW_STEPS:
        return []
    return [f"Runs of {min(steps)} steps only: more --epochs may well help, and change the order."]


def note_failures(grid: Grid) -> list[str]:
    """A note for each run that failed or is not finished."""
    lost = [cell for cell in grid.cells if not grid.is_finished(cell)]
    why = {cell.name: grid.read_failure(cell) for cell in lost}
    return [f"{name} failed: {reason}" if reason else f"{name} is not finished." for name, reason in why.items()]


def describe_unpaired(methods: list[str]) -> list[str]:
    """A note for each method that cannot be compared in pairs."""
    return [f"{name} lacks a seed, or has an infinite NLL: no gain, share or recommendation for it." for name in methods]


def describe_not_finite(judged: dict[str, dict[int, Json]]) -> list[str]:
    """A note for each run whose answers to some rows are not finite."""
    return [
        f"{name}, seed {seed} has no finite answer to {one['not_finite']:,} of {one['rows']:,} rows: its scores are not finite."
        for name, seeds in judged.items()
        for seed, one in seeds.items()
        if one.get("not_finite")
    ]


def note_caveats(grid: Grid, finished: dict[str, list[Cell]]) -> list[str]:
    """A note for each method in the way of whose training something stood."""
    found = {name: Run(grid.path / cells[0].name).read_json("result.json").get("caveat") for name, cells in finished.items()}
    return [f"{name}: {caveat}." for name, caveat in found.items() if caveat]


def describe_equivalences(methods: list[Json]) -> list[str]:
    """A note for each method that training cannot make differ from a simpler one."""
    return [f"{method['name']}: {method['equivalence']}." for method in methods if method["equivalence"]]


def describe_unsteady_latencies(methods: list[Json]) -> list[str]:
    """A note about latencies that were measured while the machine was busy: their repeats differ too much."""
    spans = {method["name"]: (method["cost"] or {}).get("latency") for method in methods}
    found = [name for name, span in spans.items() if span and span["high"] > UNSTEADY * span["low"]]
    if not found:
        return []
    return [
        f"The latency of {', '.join(found)} differs between repeats by a factor of more than {UNSTEADY:g}: the machine was "
        "busy while it was measured. Its FLOPs are counted, and do not depend on that."
    ]


def describe_few_seeds(seeds: int) -> str:
    """A note about what so few seeds cannot show."""
    if seeds == 1:
        return "One seed: intervals are over rows alone, and say nothing about another training run."
    return f"{seeds} seeds tell little about how much training runs differ: intervals are wide. Use more --seeds."


def describe_many_methods(count: int) -> list[str]:
    """A note about the chance that comes with so many methods, if they are many."""
    if count <= MANY_METHODS:
        return []
    return [f"An interval is for one comparison: of {count} methods one may be beyond the noise by chance."]


def describe_missing_reference(has_reference: bool) -> list[str]:
    """A note about what cannot be said without the reference, if there is none."""
    if has_reference:
        return []
    return [f"There is no {find_role('reference')} here: what share of its gain a method keeps is not known."]
