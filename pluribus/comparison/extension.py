"""Add methods to a comparison that was planned before. What it has stays as it is, and only what is missing is trained.

The new runs have the settings, the seeds, the budget and the number of trials that the comparison was planned with, so that the
result is that of a comparison of all methods at once.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..file_formats.comparison_files import GridFile
from ..file_formats.reading import read_yaml, write_yaml
from ..runs.choices import format_choice
from ..runs.config import build_config, parse_method
from ..runs.grid import make_cells
from ..runs.training import convert_network, load_data, resolve_config
from .budgets import fit_to_budget
from .comparison_folder import ComparisonFolder
from .notes import describe_many_methods, describe_missing_reference
from .roles import is_baseline, is_reference
from .students import add_students, describe_student_settings, find_teacher, parse_student_settings
from .tuning import FOLDER, RECORD, check_tuning, write_trials

Json = dict[str, Any]


def extend_comparison(
    made: ComparisonFolder, methods: Sequence[Any], students: Sequence[Json], student: str | Mapping[str, Any] | None = None
) -> ComparisonFolder:
    """Plan the methods and students that a comparison lacks, and return it with them; itself, if it has them all.

    Args:
        made: the comparison.
        methods: names with options, or specs.
        students: methods that are to learn from the reference.
        student: settings of training that these have, unlike the others.

    Raises:
        ConfigError, DataError or ModelError before anything is written, if a method does not fit.
    """
    taught_with = parse_student_settings(student, students, made.about["budget"])
    known = {cell.method for cell in made.grid.cells}
    plain = [cell.options["method"] for cell in made.grid.cells if not cell.is_student]
    choices = [choice for choice in map(parse_method, methods) if format_choice(choice) not in known]
    teacher = find_teacher([*plain, *choices]) if students else {}
    taught = {format_choice(cell.options["method"]) for cell in made.grid.cells if cell.is_student}
    students = [choice for choice in students if format_choice(choice) not in taught]
    if not choices and not students:
        return made
    baseline = next(cell for cell in made.grid.cells if is_baseline(cell.options["method"]) and not cell.is_student)
    options = {key: value for key, value in baseline.options.items() if key not in ("method", "seed", "teacher")}
    seeds = [cell.seed for cell in made.grid.cells if cell.method == baseline.method]
    made.grid.check_factories([baseline])
    first = build_config(baseline.options)
    build_config(baseline.options | taught_with)  # raises if they make no sense
    data = load_data(first)
    common = resolve_config(first, data)

    def fit_choice(choice: Json) -> Mapping[str, Any]:
        return fit_to_budget(common.model_copy(update={"method": choice}), data, made.about["budget"])

    own = {str(choice): fit_choice(choice) for choice in [*choices, *students]}
    for choice in choices:
        with torch.random.fork_rng(devices=[]):
            convert_network(build_config(options | {"method": choice, "seed": seeds[0]} | dict(own[str(choice)])), data)
    added = make_cells(options, choices, seeds, lambda config: own[str(config.method)])
    taught_cells = [cell for cell in made.grid.cells if cell.is_student]
    cells = [*(cell for cell in made.grid.cells if not cell.is_student), *added, *taught_cells]
    about = made.about | {"command": extend_command(made.about["command"], choices, students, taught_with)}
    notes = [*about["notes"], *(describe_student_settings(taught_with) if students else [])]
    about["notes"] = update_notes(
        dict.fromkeys(notes), len({cell.method for cell in cells}) + len(students), any(map(is_reference, [*plain, *choices]))
    )
    if "tune" in about:
        count = about["tune"]["trials"]
        check_tuning(count, len({cell.method for cell in cells}), data, first)
        (made.path / RECORD).unlink(missing_ok=True)  # it is written again from all trials
        write_trials(
            made.path,
            [baseline.options["method"], *choices],
            count,
            seeds,
            common,
            data,
            lambda config: fit_to_budget(config, data, about["budget"]),
            known=read_yaml(made.path / FOLDER / "grid.yaml", GridFile),
        )
    grid = replace(made.grid, cells=tuple(cells))
    if students:
        grid = add_students(grid, options, students, teacher, seeds, lambda choice: own[str(choice)], taught_with)
    else:
        write_yaml(grid.path / "grid.yaml", {cell.name: cell.options for cell in grid.cells})
    write_yaml(made.path / "compare.yaml", about)
    return ComparisonFolder(grid, about)


def extend_command(command: str, choices: Sequence[Json], students: Sequence[Json], settings: Mapping[str, Any]) -> str:
    """The command line that plans the whole comparison at once; empty if the first part of it had none.

    Students that are added with other settings than those before them need a second command, on a line of its own.

    >>> extend_command("pluribus compare --methods single,mimo", [{"name": "inner"}], [{"name": "single"}], {"epochs": 60})
    'pluribus compare --methods single,mimo,inner --distil single --student epochs=60'
    """
    if not command:
        return ""
    first, *later = command.splitlines()
    words = shlex.split(first)
    if choices:
        add_option(words, "--methods", choices, usual="all,")
    if not students:
        return "\n".join([shlex.join(words), *later])
    text = ",".join(f"{name}={value}" for name, value in settings.items())
    taught = words[words.index("--student") + 1] if "--student" in words[:-1] else ""
    if "--distil" in words[:-1] and (later or text != taught):
        second = ["pluribus", "compare", "--resume", "FOLDER"]
        add_option(second, "--distil", students)
        return "\n".join([shlex.join(words), *later, shlex.join(second + (["--student", text] if text else []))])
    add_option(words, "--distil", students)
    if text and not taught:
        words += ["--student", text]
    return shlex.join(words)


def add_option(words: list[str], flag: str, choices: Sequence[Json], usual: str = "") -> None:
    """Add choices to what a flag of a command line names; without the flag, to what is `usual`."""
    names = ",".join(format_choice(choice) for choice in choices)
    if flag in words[:-1]:
        words[words.index(flag) + 1] += f",{names}"
    else:
        words += [flag, usual + names]


def update_notes(notes: Iterable[str], methods: int, has_reference: bool) -> list[str]:
    """The notes of a comparison, those about many methods and a missing reference brought up to date."""
    stale = {note for count in range(methods) for note in describe_many_methods(count)} | {*describe_missing_reference(False)}
    kept = [note for note in notes if note not in stale]
    return kept + describe_missing_reference(has_reference) + describe_many_methods(methods)
