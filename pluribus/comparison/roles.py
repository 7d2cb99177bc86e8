"""Which runs of a grid are finished, and which methods are the baseline and the reference.

Gains are over the baseline (the single network); shares and equivalents are those of the reference (a deep ensemble of plain
networks). The specs of the methods say which they are.
"""

from typing import Any

from ..runs.config import build_spec, find_role, is_plain_reference
from ..runs.grid import Cell, Grid

Json = dict[str, Any]


def group_finished(grid: Grid) -> dict[str, list[Cell]]:
    """The finished and judged runs of every method that has some."""
    found: dict[str, list[Cell]] = {}
    for cell in grid.cells:
        if grid.is_finished(cell):
            found.setdefault(cell.method, []).append(cell)
    return found


def find_baseline(grid: Grid) -> str:
    """The method that gains are measured from."""
    return next(cell.method for cell in grid.cells if is_baseline(cell.options["method"]) and not cell.is_student)


def find_reference(grid: Grid) -> str:
    """The method whose gain is the whole; of several that are finished, the one of the greatest size."""
    finished = group_finished(grid)
    found = [cell for cell in grid.cells if is_reference(cell.options["method"]) and not cell.is_student]
    found.sort(key=lambda cell: (cell.method in finished, measure_size(cell.options["method"])), reverse=True)
    return found[0].method if found else find_role("reference")


def is_baseline(choice: Json) -> bool:
    """Whether gains are measured from this method."""
    return build_spec(choice).role == "baseline"


def is_reference(choice: Json) -> bool:
    """Whether shares are of this method's gain: a reference of plain networks, of any size."""
    return is_plain_reference(build_spec(choice))


def measure_size(choice: Json) -> int:
    """The members, copies or samples of a method; 1 if it has no such option."""
    spec = build_spec(choice)
    return getattr(spec, spec.size_option) if spec.size_option else 1
