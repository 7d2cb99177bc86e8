"""Measuring: which parts, on which networks, with which methods; each part is written as soon as it is finished."""

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
from ..core.suggestions import describe_unknown
from . import cases, growth, results
from .heat import Job
from .networks import NETWORKS

Json = dict[str, Any]
Report = Callable[[str, int, int], None]
"""Told what is being measured, how many slices are timed, and how many there will be."""
FEW = 5
"""Repeats below which a verdict is not worth much."""


class BenchError(PluribusError, ValueError):
    """What was asked for cannot be measured."""


@dataclass(frozen=True)
class Settings:
    repeats: int = 9
    batch: int = 128
    threads: int = min(2, os.cpu_count() or 1)

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise BenchError(f"{name} must be at least 1, got {value}")
        cores = os.cpu_count() or 1
        if self.threads > cores:
            raise BenchError(f"threads must be at most {cores}, the cores of this machine, got {self.threads}")


def chosen(what: str, names: Collection[str] | None, known: Collection[str]) -> list[str]:
    """Those names, or all of them."""
    if names is None:
        return list(known)
    if not names:
        raise BenchError(f"{what}s must be names between commas: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise BenchError(describe_unknown(what, name, known))
    return list(names)


def planned(
    parts: Collection[str] | None = None,
    networks: Collection[str] | None = None,
    methods: Collection[str] | None = None,
) -> dict[str, list[Job]]:
    """The heats of each part. None is all of them, but growth is measured on one network unless others are named."""
    wanted = chosen("part", parts, results.PARTS)
    names = chosen("method", methods, cases.METHODS)
    nets = chosen("network", networks, NETWORKS)
    plan = {
        "targets": cases.targets(nets, names),
        "table": cases.table(nets, names),
        "growth": growth.growth(growth.USUAL if networks is None else nets, names),
    }
    found = {part: jobs for part, jobs in plan.items() if part in wanted and jobs}
    if not found:
        raise BenchError(f"there is nothing in {' and '.join(wanted)} for these networks and methods: choose others")
    return found


def measure(plan: dict[str, list[Job]], folder: Path, settings: Settings, about: Json, report: Report) -> Json:
    """Run the heats, and leave the results in the folder, among those that are there. `about` is versions and machine."""
    found = results.read(folder)
    prepare(folder)
    when = datetime.datetime.now().isoformat(timespec="seconds")
    machine = about.get("machine", {}) | {"cpu": results.processor(), "threads": settings.threads}
    run = about | {"machine": machine, "settings": asdict(settings)}
    done, total = 0, settings.repeats * sum(job.heat.slices for jobs in plan.values() for job in jobs)
    with threads(settings.threads), torch.random.fork_rng(devices=[]):
        for part, jobs in plan.items():
            for job in jobs:
                title = f"{part}: {job.heat.title}: {job.name}"
                report(title, done, total)

                def tell(slices: int, title: str = title) -> None:
                    nonlocal done
                    done += slices
                    report(title, done, total)

                set_seed(0)
                rows = job.rows(job.heat.run(settings.batch, settings.repeats, tell))
                found = results.merged(found, part, rows, when, run)
                results.save(folder, found)  # what is killed now has lost one heat
    return found


def prepare(folder: Path) -> None:
    """Said before hours have gone by."""
    if folder.is_file():
        raise FileError(f"{folder} is a file: name a folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}; name another with --out") from error


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """So many of them for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
