"""The results of the benchmark: bench.json, and the page and figures that are made from it.

    format    1
    runs      when → versions, machine and settings, for every run that has rows left
    targets   rows: network, work, name; value, most, met; time, memory, flops; run
    table     rows: network, method, work; time, memory, flops; run
    growth    rows: network, method, axis, work; points, lines; run

All numbers are ratios to the base network. A new run replaces the rows that it measured, and leaves the others.
"""

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.files import write_file
from ..file_formats.bench_files import BenchFile
from ..file_formats.reading import read_json, write_json
from .growth import list_growth_keys
from .networks import NETWORKS
from .table import list_table_keys
from .targets import list_target_keys
from .workloads import TITLES

Json = dict[str, Any]
NAME = "bench.json"
KEYS = {
    "targets": ("network", "work", "name"),
    "table": ("network", "method", "work"),
    "growth": ("network", "method", "axis", "work"),
}
"""The fields that identify a row of each part."""
PARTS = tuple(KEYS)


def list_row_keys(part: str) -> Sequence[tuple[str, ...]]:
    """List the keys of all rows that a part can have today, in the order of the tables."""
    if part == "targets":
        return list_target_keys()
    return list_table_keys() if part == "table" else list_growth_keys()


def create_results() -> Json:
    """Return results without rows."""
    return {"format": 1, "runs": {}} | {part: [] for part in PARTS}


def read_results(folder: Path) -> Json:
    """Read the results of a folder, or return empty ones where it has none.

    Raises FileError if bench.json holds something else, so that it is not overwritten.
    """
    file = folder / NAME
    if not file.exists():
        return create_results()
    found = read_json(file, BenchFile)
    for row in (row for part in PARTS for row in found[part]):
        if row["network"] not in NETWORKS or row["work"] not in TITLES:
            unknown = f"{row['network']}, {row['work']}"
            raise FileError(f"{file} has a row that `pluribus bench` does not know ({unknown}): {BenchFile.cure}")
    return found


def merge_rows(old: Json, part: str, rows: list[Json], when: str, about: Json) -> Json:
    """Replace old rows by the rows of a new run, and drop the rows that can no longer be measured."""
    keys, places = KEYS[part], {key: place for place, key in enumerate(list_row_keys(part))}
    by_key = {tuple(row[name] for name in keys): row for row in [*old[part], *({**row, "run": when} for row in rows)]}
    kept = sorted((key for key in by_key if key in places), key=places.__getitem__)
    new = old | {part: [by_key[key] for key in kept]}
    used = {row["run"] for each in PARTS for row in new[each]}
    return new | {"runs": {key: run for key, run in (old["runs"] | {when: about}).items() if key in used}}


def save_results(folder: Path, results: Json) -> None:
    """Write the JSON first, because everything else can be made from it again; then the page and the figures."""
    from .figures import draw_costs, draw_growth
    from .page import format_page

    write_json(folder / NAME, results)
    write_file(folder / "bench.md", format_page(results))
    for name, draw, part in (("cost.svg", draw_costs, "table"), ("growth.svg", draw_growth, "growth")):
        if results[part]:
            write_file(folder / name, draw(results))


def find_processor_name() -> str:
    """Return the model name of the CPU, as far as the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
