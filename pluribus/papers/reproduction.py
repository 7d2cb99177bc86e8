"""Run a recipe: measure its cells as jobs, and record each as soon as it is finished.

<work>/<paper>/<artefact>.<scale>/<cell>/   where a cell works; its found.json holds the measurement of a finished cell
<work>/<paper>/shared/                      networks that several recipes need
<out>/<paper>/results/<artefact>.<scale>.json and .svg, <out>/<paper>/README.md   the results, and the page made from them
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..core.errors import FileError, PluribusError
from ..core.files import format_json
from ..data import find_data_folder
from ..data.catalog import SETS
from ..experiments import Job, check_workers, describe_unfinished, run_jobs
from ..file_formats.paper_files import build_cell_schema
from ..file_formats.reading import read_json, write_json
from ..runs.run_folder import describe_machine
from . import results
from .commits import read_commits
from .recipe import Json, Recipe, Workspace

Report = Callable[[int, int, list[str]], None]
"""Is called with how many cells are finished, how many there are, and what the running ones report."""


@dataclass(frozen=True)
class Reproduction:
    """A recipe at one of its scales, and where its files are."""

    recipe: Recipe
    scale: str
    out: Path
    """The folder of results and pages."""
    work: Path
    """The folder in which cells work."""
    data: Path | None = None
    """The folder of the data sets; None is the usual one."""
    _finished: dict[str, Json] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Cells that were read: a finished cell does not change, and there may be hundreds of them."""

    @property
    def title(self) -> str:
        """What messages call the reproduction."""
        return f"{self.recipe.id} {self.scale}"

    @property
    def cells(self) -> dict[str, Json]:
        """The options of every cell, by name."""
        return {name: dict(options) for name, options in self.recipe.scales[self.scale].cells.items()}

    @property
    def folder(self) -> Path:
        """The folder in which the cells work, each in a folder of its own name."""
        return self.work / self.recipe.paper_name / f"{self.recipe.name}.{self.scale}"

    @property
    def shared(self) -> Path:
        """The folder of networks that several recipes of the paper need."""
        return self.work / self.recipe.paper_name / "shared"

    def read_cell(self, name: str) -> Json | None:
        """Return what a cell left in its folder, or None if it is not finished with the present options."""
        path = self.folder / name / "found.json"
        cell = read_json(path, build_cell_schema(self.recipe.measured)) if path.is_file() else None
        return self._match(name, cell)

    def read_cells(self) -> dict[str, Json]:
        """Return the cells that are finished, by name: from their folders, or from the results that were recorded."""
        known = self._finished
        recorded = {} if known else results.read_result(self.out, self.recipe, self.scale).get("cells", {})
        for name in self.cells:
            cell = known.get(name) or self.read_cell(name) or self._match(name, recorded.get(name))
            if cell is not None:
                known[name] = cell
        return {name: known[name] for name in self.cells if name in known}

    def read_states(self) -> tuple[int, list[str]]:
        """Return how many cells are finished, and what the others report."""
        finished = self.read_cells()
        return len(finished), [
            text for name in self.cells if name not in finished and (text := _read_state(self.folder / name))
        ]

    def create_job(self, name: str) -> Job:
        """Return the job that measures a cell."""
        from ..training.interrupts import Interrupted

        folder, data = (self.folder / name).resolve(), None if self.data is None else str(self.data.resolve())
        arguments = (self.recipe.id, self.cells[name], str(folder), str(self.shared.resolve()), data)
        return Job(name, folder, measure_cell, arguments, (Interrupted,))

    def _match(self, name: str, cell: Json | None) -> Json | None:
        """Return the cell if it was measured with the present options."""
        return cell if cell and cell["options"] == json.loads(format_json(self.cells[name])) else None


def reproduce(reproduction: Reproduction, workers: str = "1", report: Report | None = None) -> Json:
    """Measure the cells that are not finished, and write result, figure and page.

    Args:
        reproduction: which recipe, at which scale, and where its files go.
        workers: a number of processes, `dask://host:port` or `ray`.
        report: is called whenever a cell finishes or reports its progress.

    Returns:
        The result, as `papers.results` describes it.

    Raises:
        FileError: if a folder cannot be written to, or data are missing; nothing is measured then.
        PluribusError: if cells failed; those that finished are recorded.
    """
    check_workers(workers)
    recipe, scale, out = reproduction.recipe, reproduction.scale, reproduction.out
    folders = (results.locate_result(out, recipe, scale).parent, reproduction.folder, reproduction.shared)
    for folder in folders:
        _check_folder(folder)
    finished = reproduction.read_cells()
    obstacle = find_obstacle(reproduction)
    if obstacle is not None:
        raise obstacle
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for name in reproduction.cells:  # a process that was killed leaves its last state
        (reproduction.folder / name / "state.txt").unlink(missing_ok=True)
    unfinished = run_jobs(
        [reproduction.create_job(name) for name in reproduction.cells if name not in finished],
        workers,
        is_finished=lambda job: reproduction.read_cell(job.name) is not None,
        read_states=reproduction.read_states,
        report=_Recorder(reproduction, report),
    )
    result = results.save_result(out, recipe, scale, reproduction.read_cells())
    if unfinished:
        raise PluribusError(f"{reproduction.title}: {describe_unfinished(unfinished, len(reproduction.cells), 'cells')}")
    return result


def find_obstacle(reproduction: Reproduction) -> PluribusError | None:
    """Return why a recipe cannot be run here: it is not run at this scale, or its data are missing. None if it can be run."""
    scale = reproduction.recipe.scales[reproduction.scale]
    if not scale.cells:
        reasons = "; ".join(f"{what}: {why}" for what, why in scale.not_run.items())
        return PluribusError(f"{reproduction.title} is not run at this scale: {reasons}")
    if len(reproduction.read_cells()) == len(reproduction.cells):
        return None
    for name in scale.data:
        try:
            SETS[name].find_files(find_data_folder(reproduction.data))
        except PluribusError as error:
            return error
    return None


def measure_cell(recipe: str, options: Json, folder: str, shared: str, data: str | None) -> None:
    """Measure one cell of a recipe, and write found.json. A worker calls this."""
    from . import load_recipes

    workspace = Workspace(Path(folder), Path(shared), None if data is None else Path(data))
    workspace.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        workspace.report("started")
        with torch.random.fork_rng(devices=[]):
            found = load_recipes()[recipe].measure(dict(options), workspace)
        about = describe_machine() | read_commits(Path(__file__).parent / recipe.partition("/")[0])
        cell = {"options": options, "seconds": round(time.monotonic() - began, 1), "about": about, "found": found}
        write_json(workspace.folder / "found.json", cell)
    finally:
        (workspace.folder / "state.txt").unlink(missing_ok=True)


class _Recorder:
    """Record a partial result whenever a cell finishes, and pass states on."""

    def __init__(self, reproduction: Reproduction, report: Report | None) -> None:
        self.reproduction, self.report, self.recorded = reproduction, report, 0

    def __call__(self, states: tuple[int, list[str]]) -> None:
        finished, texts = states
        job, total = self.reproduction, len(self.reproduction.cells)
        if self.report is not None:
            self.report(finished, total, texts)
        if self.recorded < finished < total:
            results.save_result(job.out, job.recipe, job.scale, job.read_cells())
        self.recorded = finished


def _read_state(folder: Path) -> str:
    """Return what the cell in this folder last reported, or ""."""
    try:
        return f"{folder.name}: {(folder / 'state.txt').read_text(encoding='utf-8').strip()}"
    except OSError:
        return ""


def _check_folder(folder: Path) -> None:
    """Raise unless the folder exists or can be created, and can be written to."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        reason = "cannot be written to" if there.is_dir() else "is a file"
        raise FileError(f"cannot make the folder {folder}: {there} {reason}; name another with --out or --work")
