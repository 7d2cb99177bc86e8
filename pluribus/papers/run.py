"""Running a recipe: its cells through joblib, each written down as soon as it is finished, and never measured twice.

<work>/<paper>/<artefact>.<scale>/<cell>/   where a cell works; found.json is what it measured, and says that it is finished
<work>/<paper>/shared/                      networks that several recipes need
<out>/<paper>/results/<artefact>.<scale>.json and .svg, <out>/<paper>/README.md   what is left for people
"""

import contextlib
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..core.errors import FileError, PluribusError
from ..core.files import format_json, write_file
from ..data import folder_of
from ..data.catalog import SETS
from ..runs.grid import ALONE, WorkerDied, check_workers, dispatched
from ..runs.run_folder import describe_machine
from . import results
from .recipe import Json, Place, Recipe

ATTEMPTS = 5
Report = Callable[[int, int, list[str]], None]
"""Told how many cells are finished, how many there are, and what those that run say."""


@dataclass(frozen=True)
class Job:
    """A recipe at a scale, and where its things are."""

    recipe: Recipe
    scale: str
    out: Path
    work: Path
    data: Path | None = None

    @property
    def title(self) -> str:
        return f"{self.recipe.id} {self.scale}"

    @property
    def cells(self) -> dict[str, Json]:
        return {name: dict(options) for name, options in self.recipe.scales[self.scale].cells.items()}

    @property
    def folder(self) -> Path:
        return self.work / self.recipe.of / f"{self.recipe.name}.{self.scale}"

    @property
    def shared(self) -> Path:
        return self.work / self.recipe.of / "shared"

    def found(self) -> dict[str, Json]:
        """The cells that are finished: here, or in the results that were recorded."""
        recorded = results.read(results.path(self.out, self.recipe, self.scale)).get("cells", {})
        finished = {}
        for name, options in self.cells.items():
            here = _read(self.folder / name / "found.json")
            for cell in (here, recorded.get(name)):
                if cell and cell["options"] == json.loads(format_json(options)):
                    finished[name] = cell
                    break
        return finished


def reproduce(job: Job, workers: str = "1", report: Report | None = None) -> Json:
    """Measure what is not finished, and leave result, figure and page. Returns the result."""
    check_workers(workers)
    folders = (results.path(job.out, job.recipe, job.scale).parent, job.folder, job.shared)
    for folder in folders:
        _check(folder)
    if len(job.found()) < len(job.cells):  # nothing is begun that cannot be finished
        for name in job.recipe.scales[job.scale].data:
            SETS[name].find(folder_of(job.data))
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for name in job.cells:
        for old in ("failed.txt", "state.txt"):  # of a run that was killed, or to be tried again
            (job.folder / name / old).unlink(missing_ok=True)
    with watched(job, report):
        for _ in range(ATTEMPTS):
            left = [name for name in job.cells if name not in job.found() and not _failed(job, name)]
            if not left:
                break
            tasks = [(one, (job.recipe.id, job.cells[name], *_places(job, name))) for name in left]
            try:
                dispatched(tasks, workers)
            except WorkerDied as error:
                warnings.warn(f"a worker died ({error}); going on with what is left", stacklevel=2)
    result = results.save(job.out, job.recipe, job.scale, job.found())
    lost = [name for name in job.cells if name not in job.found()]
    if lost:
        reason = _failed(job, lost[0]) or "its worker died again and again"
        raise PluribusError(f"{job.title}: {len(lost)} of {len(job.cells)} cells did not finish; {lost[0]}: {reason}")
    return result


def one(recipe: str, options: Json, folder: str, shared: str, data: str | None, threads: int) -> None:
    """What a worker does: one cell. An error is written down, not thrown: the others go on."""
    import pluribus  # noqa: F401  the methods

    from ..training.interrupts import Interrupted
    from . import recipes

    place = Place(Path(folder), Path(shared), None if data is None else Path(data))
    place.folder.mkdir(parents=True, exist_ok=True)
    before, began = torch.get_num_threads(), time.monotonic()
    try:
        torch.set_num_threads(threads)
        place.tell("started")
        with ALONE, torch.random.fork_rng(devices=[]):
            found = recipes()[recipe].measure(dict(options), place)
        cell = {"options": options, "seconds": round(time.monotonic() - began, 1), "about": describe_machine(), "found": found}
        write_file(place.folder / "found.json", format_json(cell) + "\n")
    except (KeyboardInterrupt, Interrupted):  # by a person: the next cell must not begin
        raise
    except Exception as error:
        write_file(place.folder / "failed.txt", f"{type(error).__name__}: {error}\n")
    finally:
        (place.folder / "state.txt").unlink(missing_ok=True)
        torch.set_num_threads(before)  # it may be the caller's own process


@contextlib.contextmanager
def watched(job: Job, report: Report | None) -> Iterator[None]:
    """Look at the folders twice a second, and write down what is finished: they tell the same wherever cells run."""
    done = threading.Event()

    def look() -> None:
        count, said = -1, list[str]()
        while True:
            last = done.wait(0.5)
            finished = job.found()
            texts = [text for name in job.cells if name not in finished and (text := _state(job.folder / name))]
            if report is not None and (len(finished), texts) != (count, said):
                report(len(finished), len(job.cells), texts)
            if len(finished) > max(count, 0) and len(finished) < len(job.cells):
                results.save(job.out, job.recipe, job.scale, finished)  # partial, and says so
            count, said = len(finished), texts
            if last:
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _places(job: Job, name: str) -> tuple[str, str, str | None]:
    data = None if job.data is None else str(job.data.resolve())
    return str((job.folder / name).resolve()), str(job.shared.resolve()), data


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _state(folder: Path) -> str:
    try:
        return f"{folder.name}: {(folder / 'state.txt').read_text(encoding='utf-8').strip()}"
    except OSError:
        return ""


def _failed(job: Job, name: str) -> str:
    path = job.folder / name / "failed.txt"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _check(folder: Path) -> None:
    """Whether the folder is there, or can be made."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        reason = "it cannot be written to" if there.is_dir() else "it is a file"
        raise FileError(f"cannot make the folder {folder}: of {there}, {reason}; name another with --out or --work")
