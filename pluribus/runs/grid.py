"""A grid of runs, methods × seeds, as jobs of `pluribus.experiments`.

Each run has its own folder and its own checkpoints. So a worker that dies costs time only: a finished run is never done again,
and an unfinished one continues from its last checkpoint.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import FileError, PluribusError
from ..core.file_names import check_file_name, check_inside
from ..core.files import remove_leftovers, write_file
from ..core.texts import shorten
from ..experiments import Job, describe_unfinished, read_failure, run_jobs
from ..file_formats.comparison_files import GridFile
from ..file_formats.reading import read_yaml, write_yaml
from ..file_formats.run_files import read_metrics
from ..models.factories import import_factory, treat_as_data
from .choices import format_choice
from .config import Config, ConfigError, build_config, name_student, parse_method, resolve_paths
from .consent import NOTHING, Consent, check_consent, find_model_name, get_consent, give_consent
from .evaluation import EvaluationSettings, build_evaluation_settings
from .loading import passed_objects
from .run_folder import Run

MOST_SEEDS = 10_000
SHOWN = ("accuracy", "nll", "ece", "rmse")
"""Validation scores that the table shows while a run is trained: those that its result has, too."""

Report = Callable[[list[dict[str, Any]]], None]


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    name: str
    """That of its folder in the grid. Raises FileError if it could lead out of the grid."""
    options: dict[str, Any]
    title: str = ""
    """What tables call its method, if that is not told by the options: some of them may have been chosen by tuning."""

    def __post_init__(self) -> None:
        check_file_name(self.name, "grid.yaml")

    @property
    def method(self) -> str:
        return self.title or name_student(format_choice(self.options["method"]), self.options["teacher"])

    @property
    def is_student(self) -> bool:
        """Whether it learns from another run."""
        return self.options["teacher"] is not None

    @property
    def teacher(self) -> str:
        """The name of the teacher's run beside this one; empty if it has none there."""
        place = Path((self.options["teacher"] or {}).get("run", ""))
        return place.name if place.parent == Path("..") else ""

    @property
    def seed(self) -> int:
        return self.options["seed"]


@dataclass(frozen=True)
class Grid:
    """Runs in one folder. In a comparison, which has a `judging`, each run is evaluated as soon as it is trained."""

    path: Path
    cells: tuple[Cell, ...]
    judging: EvaluationSettings | None = None
    objects: Mapping[str, Any] = field(default_factory=dict)
    """Networks and data that were passed from Python, by their names in the cells' options."""

    @staticmethod
    def plan(
        path: Path,
        options: Mapping[str, Any],
        methods: list[Any],
        seeds: list[int],
        judging: EvaluationSettings | None = None,
        adjust: Callable[[Config], Mapping[str, Any]] = lambda _: {},
        objects: Mapping[str, Any] | None = None,
    ) -> "Grid":
        """Write the grid into a new folder, after checking every cell. `adjust` returns settings for the runs of one method.

        Raises ConfigError if a cell makes no sense, ConsentError or ModelError if a factory must not or cannot be imported, and
        FileError if the folder is not empty.
        """
        if path.is_file():
            raise FileError(f"{path} is a file: name a folder for the grid")
        if path.is_dir() and any(path.iterdir()):
            raise FileError(
                f"{path} is not empty: resume it (--resume, or resume=True), or name another folder (--out, or folder=…)"
            )
        cells = make_cells(options, methods, seeds, adjust)
        grid = Grid(path, tuple(cells), judging, objects or {})
        grid.check_factories(grid.cells)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {path}: {error.strerror}; name another with --out") from error
        write_yaml(path / "grid.yaml", {cell.name: cell.options for cell in cells})
        return grid

    @staticmethod
    def open(path: Path, judging: EvaluationSettings | None = None, objects: Mapping[str, Any] | None = None) -> "Grid":
        """Open a grid that was planned before. Raises FileError if grid.yaml is missing or damaged."""
        content = read_yaml(path / "grid.yaml", GridFile)
        cells = [Cell(name, build_config(options, name).model_dump(mode="json")) for name, options in content.items()]
        return Grid(path, tuple(cells), judging, objects or {})

    def is_finished(self, cell: Cell) -> bool:
        """Whether a run is trained and, in a comparison, evaluated."""
        run = Run(self.path / cell.name)
        return run.is_finished and (run.weights.is_file() if self.judging is None else run.is_judged)

    def run(self, workers: str = "1", report: Report | None = None, *, whole: bool = True) -> list[dict[str, Any]]:
        """Run what is not finished, and return the state of every cell. The runs of a worker that dies are run again.

        `report` is called with the states whenever they change; grid.csv holds them, too. Raises PluribusError if a run failed
        or, unless the grid must be `whole`, if all runs failed. Raises ConsentError or ModelError before the first run if
        grid.yaml names a factory that the user has not consented to, or that must not or cannot be imported.
        """
        cells = {cell.name: cell for cell in self.cells}
        self.check_factories([cell for cell in self.cells if not self.is_finished(cell)])
        remove_leftovers(self.path)

        def report_states(states: list[dict[str, Any]]) -> None:
            self.write_table(states)
            if report is not None:
                report(states)

        unfinished: dict[str, str] = {}
        for stage in self.list_stages():
            unfinished |= run_jobs(
                [self.make_job(cell) for cell in stage],
                workers,
                is_finished=lambda job: self.is_finished(cells[job.name]),
                read_states=self.read_states,
                report=report_states,
            )
        if unfinished and (whole or len(unfinished) == len(self.cells)):
            raise PluribusError(describe_unfinished(unfinished, len(self.cells), "runs"))
        return self.read_states()

    def list_stages(self) -> list[list[Cell]]:
        """The cells in the order in which they can run: those of a stage do not need one another, but earlier stages.

        A student runs after its teacher, if that is a cell of the grid. Raises FileError if cells teach one another.
        """
        left, done, stages = list(self.cells), set[str](), []
        names = {cell.name for cell in self.cells}
        while left:
            ready = [cell for cell in left if cell.teacher not in names - done]
            if not ready:
                raise FileError(f"{self.path / 'grid.yaml'} is damaged: {left[0].name} waits for itself as a teacher")
            stages.append(ready)
            done |= {cell.name for cell in ready}
            left = [cell for cell in left if cell.name not in done]
        return stages

    def check_factories(self, cells: Sequence[Cell]) -> None:
        """Import the factories that cells name. Raises ConsentError or ModelError if one must not or cannot be imported."""
        for cell in cells:
            check_consent(cell.options["model"], self.path / "grid.yaml")
        names = {find_model_name(cell.options["model"]) for cell in cells}
        with treat_as_data(self.path):
            for name in sorted(name for name in names if ":" in name):
                import_factory(name)

    def make_job(self, cell: Cell) -> Job:
        """The job that trains and judges a cell. Raises FileError if a link leads out of the grid."""
        from ..training.interrupts import Interrupted

        folder = check_inside(self.path / cell.name, self.path).resolve()
        judging = None if self.judging is None else self.judging.model_dump(mode="json")
        arguments = (cell.options, str(folder), judging, self.objects, get_consent())
        return Job(cell.name, folder, run_cell, arguments, (Interrupted,))

    def read_failure(self, cell: Cell) -> str:
        """Why a run failed; empty if it did not."""
        return read_failure(self.path / cell.name)

    def read_states(self) -> list[dict[str, Any]]:
        """The state of every run, read from its folder, so that it does not matter where the run takes place."""
        return [read_state(Run(self.path / cell.name), cell, self.judging is not None) for cell in self.cells]

    def write_table(self, states: list[dict[str, Any]]) -> None:
        """Write grid.csv, the table so far."""
        names = list(dict.fromkeys(name for each in states for name in each["scores"]))
        text = io.StringIO()
        table = csv.writer(text)
        table.writerow(["run", "method", "seed", "state", *names, "seconds"])
        for cell, each in zip(self.cells, states, strict=True):
            scores = [each["scores"].get(name, "") for name in names]
            table.writerow([cell.name, each["method"], each["seed"], each["state"], *scores, each.get("seconds", "")])
        write_file(self.path / "grid.csv", text.getvalue())


def make_cells(
    options: Mapping[str, Any], methods: Sequence[Any], seeds: Sequence[int], adjust: Callable[[Config], Mapping[str, Any]]
) -> list[Cell]:
    """The cells of methods × seeds, as `Grid.plan` makes them. Raises ConfigError if one makes no sense."""
    cells: list[Cell] = []
    for method in methods:
        choice = parse_method(method)
        own = adjust(build_config(dict(options) | {"method": choice, "seed": seeds[0]}))
        for seed in seeds:
            wanted = resolve_paths(build_config(dict(options) | {"method": choice, "seed": seed} | dict(own)))
            cells.append(Cell(f"{make_folder_name(choice)}-seed{seed}", wanted.model_dump(mode="json")))
    names = [cell.name for cell in cells]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"the grid has {twice[0]} more than once")
    return cells


def make_folder_name(choice: dict[str, Any]) -> str:
    """The choice of a method as a part of the name of a folder.

    >>> make_folder_name({"name": "mimo", "members": 2})
    'mimo-members-2'
    """
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in format_choice(choice))


def read_state(run: Run, cell: Cell, judging: bool = False) -> dict[str, Any]:
    """How far a run is, read from its folder: method, seed, state, scores and, at the end, seconds."""
    about: dict[str, Any] = {"method": cell.method, "seed": cell.seed, "state": "waiting", "scores": {}}
    failed = bool(read_failure(run.path))
    if run.is_finished:
        result = run.read_json("result.json")
        now = "done" if run.is_judged or not judging else "failed" if failed else "judging"
        return about | {"state": now, "scores": result["scores"], "seconds": result["seconds"]}
    if failed:
        return about | {"state": "failed"}
    if run.metrics.is_file():
        rows = read_metrics(run.metrics)
        if rows:
            last = {name: rows[-1][f"validation_{name}"] for name in SHOWN if f"validation_{name}" in rows[-1]}
            return about | {"state": describe_state(rows, cell), "scores": last}
    return about | ({"state": "started"} if run.path.is_dir() else {})


def describe_state(rows: list[dict[str, float]], cell: Cell) -> str:
    """How many epochs of how many a run has trained for, by the rows of its metrics.csv; "≤" if it may be fewer."""
    from ..training.phases import plan_phases

    if cell.options["epochs"] != "auto":
        return f"epoch {rows[-1]['epoch']:.0f}/{cell.options['epochs']}"
    phases = plan_phases(rows, build_config(cell.options))
    assert phases is not None
    return f"epoch {rows[-1]['epoch']:.0f}/{'' if phases.has_fallen else '≤'}{phases.epochs}"


def run_cell(
    options: dict[str, Any],
    path: str,
    judging: dict[str, Any] | None = None,
    objects: Mapping[str, Any] | None = None,
    consent: Consent = NOTHING,
) -> None:
    """Train one run from its last checkpoint on and, in a comparison, evaluate it. A worker calls this."""
    from .evaluation import judge_run
    from .training import train_run

    folder = Path(path)
    with passed_objects(objects or {}), give_consent(consent):
        train_run(build_config(options), folder, resume=True, progress=False, wait=True)
        if judging is not None and not Run(folder).is_judged:
            judge_run(folder, build_evaluation_settings(**judging))


def parse_seeds(text: str | None, first: Any) -> list[int]:
    """Parse the option --seeds: `3` is three seeds from the first on, `0,5,7` are these. Raises ConfigError.

    >>> parse_seeds("3", 0), parse_seeds("5,7", 0), parse_seeds(None, 4)
    ([0, 1, 2], [5, 7], [4])
    """
    try:
        start = int(first)
    except (TypeError, ValueError):
        raise ConfigError(f"seed must be a whole number, got {shorten(repr(first))}") from None
    if text is None:
        return [start]
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"seeds must be a number of them, or seeds between commas, got {shorten(repr(text))}") from None
    if len(numbers) > MOST_SEEDS or (len(numbers) == 1 and numbers[0] > MOST_SEEDS):
        raise ConfigError(f"seeds must be at most {MOST_SEEDS:,}, got {max(len(numbers), numbers[0]):,}: each is a run")
    if len(numbers) > 1:
        return numbers
    if numbers[0] < 1:
        raise ConfigError(f"seeds must be at least 1, got {numbers[0]}")
    return list(range(start, start + numbers[0]))
