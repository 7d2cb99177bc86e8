"""What the benchmark leaves: bench.json, and what is generated from it.

    format    1
    runs      when → versions, machine and settings, for every run that rows are left of
    targets   rows: network, work, name; value, most, met; time, memory, flops; run
    table     rows: network, method, work; time, memory, flops; run
    growth    rows: network, method, axis, work; points, lines; run

All numbers are ratios to the base network. A new run replaces the rows that it measured, and leaves the others.
"""

import json
import platform
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.files import format_json, write_file
from .cases import METHODS, TABLED, TRIALS
from .growth import AXES
from .networks import NETWORKS

Json = dict[str, Any]
NAME = "bench.json"
KEYS = {
    "targets": ("network", "work", "name"),
    "table": ("network", "method", "work"),
    "growth": ("network", "method", "axis", "work"),
}
"""What tells the rows of a part apart."""
PARTS = tuple(KEYS)


def known(part: str) -> list[tuple[str, ...]]:
    """The rows that there can be, in the order of the tables."""
    if part == "targets":
        return [(trial.network, trial.work, target.name) for trial in TRIALS for target in trial.targets]
    if part == "table":
        return [(network, method, work) for network in NETWORKS for method in METHODS for work in TABLED]
    return [
        (network, method, axis.letter, work)
        for network in NETWORKS
        for axis in AXES
        for method in METHODS
        for work in axis.works
        if method in axis.options
    ]


def empty() -> Json:
    return {"format": 1, "runs": {}} | {part: [] for part in PARTS}


def read(folder: Path) -> Json:
    """What is there already; a file that is something else is not overwritten."""
    file = folder / NAME
    if not file.exists():
        return empty()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] != 1 or any(row["run"] not in found["runs"] for part in PARTS for row in found[part]):
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{file} does not hold what `pluribus bench` leaves: move it away, or name another folder") from error
    return found


def merged(old: Json, part: str, rows: list[Json], when: str, about: Json) -> Json:
    """With the rows of a run in the place of the old ones; those of cases that are no more are dropped."""
    keys, places = KEYS[part], {key: place for place, key in enumerate(known(part))}
    by_key = {tuple(row[name] for name in keys): row for row in [*old[part], *({**row, "run": when} for row in rows)]}
    kept = sorted((key for key in by_key if key in places), key=places.__getitem__)
    new = old | {part: [by_key[key] for key in kept]}
    used = {row["run"] for each in PARTS for row in new[each]}
    return new | {"runs": {key: run for key, run in (old["runs"] | {when: about}).items() if key in used}}


def save(folder: Path, results: Json) -> None:
    """The JSON first: all else can be made from it again."""
    from .figure import costs, grown
    from .markdown import page

    write_file(folder / NAME, format_json(results) + "\n")
    write_file(folder / "bench.md", page(results))
    for name, draw, part in (("cost.svg", costs, "table"), ("growth.svg", grown, "growth")):
        if results[part]:
            write_file(folder / name, draw(results))


def processor() -> str:
    """The name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
