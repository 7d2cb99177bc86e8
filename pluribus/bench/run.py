"""Running the benchmark: which parts, on which networks, with which methods. Results are written after every measurement.

Measurements run one after the other in one process, because runs at the same time would disturb each other's timing: that is
why the engine for parallel jobs is not used here.
"""

import contextlib
import datetime
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from ..core.errors import FileError, PluribusError
from ..core.seeds import set_seed
from ..core.spec import list_methods
from ..core.suggestions import describe_unknown
from . import results
from .growth import DEFAULT_NETWORKS, plan_growth
from .measurement import Job
from .networks import NETWORKS
from .table import plan_table
from .targets import plan_targets

Json = dict[str, Any]
Report = Callable[[str, int, int], None]
"""Receives the title of the measurement, how many timings are done, and how many there will be."""
FEW = 5
"""With fewer repeats a verdict on a target means little."""
MOST = 10_000
"""Of repeats, and of rows in a batch."""


class BenchError(PluribusError, ValueError):
    """The benchmark cannot measure what was asked for."""


@dataclass(frozen=True)
class Settings:
    repeats: int = 9
    batch: int = 128
    threads: int = min(2, os.cpu_count() or 1)

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise BenchError(f"{name} must be at least 1, got {value}")
            if value > MOST and name != "threads":
                raise BenchError(f"{name} must be at most {MOST:,}, got {value:,}")
        cores = os.cpu_count() or 1
        if self.threads > cores:
            raise BenchError(f"threads must be at most {cores}, the cores of this machine, got {self.threads}")


def select_names(what: str, names: Collection[str] | None, known: Collection[str]) -> list[str]:
    """Check names against the known ones, and return them; without names, all known ones."""
    if names is None:
        return list(known)
    if not names:
        raise BenchError(f"{what}s must be names between commas: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise BenchError(describe_unknown(what, name, known))
    return list(names)


def plan_benchmark(
    parts: Collection[str] | None = None,
    networks: Collection[str] | None = None,
    methods: Collection[str] | None = None,
) -> dict[str, list[Job]]:
    """Plan the measurements of each part. None selects all, but growth is measured on one network unless others are named.

    Raises BenchError on unknown names, and where nothing is left to measure.
    """
    wanted = select_names("part", parts, results.PARTS)
    names = select_names("method", methods, list_methods())
    nets = select_names("network", networks, NETWORKS)
    plan = {
        "targets": plan_targets(nets, names),
        "table": plan_table(nets, names),
        "growth": plan_growth(DEFAULT_NETWORKS if networks is None else nets, names),
    }
    found = {part: jobs for part, jobs in plan.items() if part in wanted and jobs}
    if not found:
        raise BenchError(f"there is nothing in {' and '.join(wanted)} for these networks and methods: choose others")
    return found


def run_benchmark(plan: dict[str, list[Job]], folder: Path, settings: Settings, about: Json, report: Report) -> Json:
    """Run the planned measurements, and add their rows to the results in the folder.

    `about` holds versions and machine, which are recorded with the rows. After a kill, only the measurement that was running
    is lost.
    """
    found = results.read_results(folder)
    create_folder(folder)
    when = datetime.datetime.now().isoformat(timespec="seconds")
    machine = about.get("machine", {}) | {"cpu": results.find_processor_name(), "threads": settings.threads}
    run = about | {"machine": machine, "settings": asdict(settings)}
    done, total = 0, settings.repeats * sum(job.measurement.timings for jobs in plan.values() for job in jobs)
    with thread_count(settings.threads), torch.random.fork_rng(devices=[]):
        for part, jobs in plan.items():
            for job in jobs:
                title = f"{part}: {job.measurement.title}: {job.name}"
                report(title, done, total)

                def add_progress(timings: int, title: str = title) -> None:
                    nonlocal done
                    done += timings
                    report(title, done, total)

                set_seed(0)
                rows = job.make_rows(job.measurement.run(settings.batch, settings.repeats, add_progress))
                found = results.merge_rows(found, part, rows, when, run)
                results.save_results(folder, found)
    return found


def create_folder(folder: Path) -> None:
    """Create the folder, or raise FileError before anything is measured."""
    if folder.is_file():
        raise FileError(f"{folder} is a file: name a folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}; name another with --out") from error


@contextlib.contextmanager
def thread_count(count: int) -> Iterator[None]:
    """Run the body with this many threads of torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
