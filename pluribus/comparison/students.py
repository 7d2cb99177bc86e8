"""Students in a comparison: methods that learn from the reference's runs.

Each student is taught by the run of the reference (the largest plain deep ensemble) with its own seed, which lies beside it in
the folder. The grid runs students after their teachers; they are evaluated, costed and recommended like every other method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.suggestions import describe_unknown
from ..core.texts import quote
from ..file_formats.reading import write_yaml
from ..runs.choices import format_choice, parse_choice, split_choices
from ..runs.config import Config, ConfigError, build_config, find_role, parse_method, resolve_paths
from ..runs.grid import Cell, Grid, make_folder_name
from ..training.settings import Settings
from .roles import is_reference, measure_size

Json = dict[str, Any]


def expand_students(students: Any) -> list[Json]:
    """The choices of students: names between commas, a list of names and specs, or None for no students. Raises ConfigError.

    >>> expand_students("mimo,multihead:members=4")
    [{'name': 'mimo'}, {'name': 'multihead', 'members': 4}]
    """
    if students is None:
        return []
    each = split_choices(students) if isinstance(students, str) else students if isinstance(students, Sequence) else [students]
    if not each:
        raise ConfigError(f"distil must be names of methods between commas or in a list, got {students!r}")
    if "all" in [one for one in each if isinstance(one, str)]:
        raise ConfigError("distil must name its students, such as single,mimo: each of them trains one more run for every seed")
    return [parse_method(one) for one in each]


def parse_student_settings(given: str | Mapping[str, Any] | None, students: Sequence[Json], budget: str) -> Json:
    """Settings of training that students have alone: `epochs=60,mixup=1`, or a dictionary. Raises ConfigError.

    >>> parse_student_settings("epochs=60,mixup=1", [{"name": "single"}], "epochs")
    {'epochs': 60, 'mixup': 1}
    """
    if given is None:
        return {}
    if not students:
        raise ConfigError("student holds settings of students, and there are none: name some with distil (--distil)")
    if isinstance(given, str) and "=" not in given.partition(",")[0]:
        raise ConfigError(f"student holds settings, written setting=value,setting=value: got {quote(given)}")
    found = {**parse_choice(f"student:{given}")} if isinstance(given, str) else {"name": "student", **given}
    del found["name"]
    known = [name for name in (*Settings.model_fields, "augment") if name != "seed"]
    for name in found:
        if name not in known:
            raise ConfigError(describe_unknown("setting of a student", name, known))
    if budget != "epochs" and {"epochs", "max_epochs"} & set(found):
        raise ConfigError(f"student cannot set epochs, because the budget {budget} does: leave them out, or hold epochs equal")
    return found


def describe_student_settings(settings: Mapping[str, Any]) -> list[str]:
    """A note about settings that only students have."""
    if not settings:
        return []
    listed = ", ".join(f"{name} {value}" for name, value in settings.items())
    return [f"Students were trained with {listed}, unlike the others."]


def find_teacher(choices: Sequence[Json]) -> Json:
    """The method that teaches: the largest reference among the methods. Raises ConfigError if there is none."""
    found = [choice for choice in choices if is_reference(choice)]
    if not found:
        raise ConfigError(f"distil needs a teacher, and {find_role('reference')} does not fit the budget: leave distil out")
    return max(found, key=measure_size)


def add_students(
    grid: Grid,
    options: Mapping[str, Any],
    students: Sequence[Json],
    teacher: Json,
    seeds: Sequence[int],
    adjust: Callable[[Json], Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
) -> Grid:
    """Add a run for each student and seed to a grid that was planned with its teachers, and write grid.yaml again.

    Args:
        options: the settings that all runs share.
        teacher: the choice of the method that teaches; the grid has its run for every seed.
        adjust: returns the settings that bring a student within the budget.
        settings: those of training that all students have, unlike the others.

    Raises:
        ConfigError: a student is named twice, or makes no sense.
    """
    cells = list(grid.cells)
    for choice in students:
        for seed in seeds:
            taught_by = {"run": f"../{make_folder_name(teacher)}-seed{seed}", "method": format_choice(teacher)}
            own: Json = {**options, "method": choice, "seed": seed, **adjust(choice), **(settings or {}), "teacher": taught_by}
            made: Config = resolve_paths(build_config(own))
            name = f"{make_folder_name(choice)}-from-{make_folder_name(teacher)}-seed{seed}"
            if name in [cell.name for cell in cells]:
                raise ConfigError(f"the comparison has the student {name} more than once")
            cells.append(Cell(name, made.model_dump(mode="json")))
    write_yaml(grid.path / "grid.yaml", {cell.name: cell.options for cell in cells})
    return replace(grid, cells=tuple(cells))


def describe_students(methods: Sequence[Json], budget: str) -> list[str]:
    """A note about the students among the methods of results.json: who taught them, and what of it is not counted."""
    teachers = sorted({method["teacher"] for method in methods if method.get("teacher")})
    if not teachers:
        return []
    spent = "training FLOPs and the budget" if budget == "training-flops" else "training FLOPs"
    return [
        f"Methods with an arrow (←) are students of {', '.join(teachers)} with the same seed: their {spent} do not count the "
        "teacher's training, nor its answers."
    ]
