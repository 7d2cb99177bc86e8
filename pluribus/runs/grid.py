"""Several runs that do not need one another: methods × seeds, through joblib, here or on a cluster.

Each run has its own folder and its own checkpoints. So a worker that dies loses nothing but time: what is finished is never
done again, what is not goes on from where it was, on whichever worker is left.
"""

import contextlib
import csv
import importlib.util
import io
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from ..core.allocator import keep_freed_memory
from ..core.errors import FileError, PluribusError
from ..core.files import write_file
from .config import Config, ConfigError, build_config, format_choice, parse_method, read_settings, resolve_paths
from .evaluation import EvaluationSettings, build_evaluation_settings
from .run_folder import Run

ATTEMPTS = 5
ALONE = threading.Lock()
"""One run at a time in a process: a Dask worker has several threads, and all of them draw from one generator."""

Report = Callable[[list[dict[str, Any]]], None]


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    name: str
    options: dict[str, Any]

    @property
    def method(self) -> str:
        return format_choice(self.options["method"])

    @property
    def seed(self) -> int:
        return self.options["seed"]


@dataclass(frozen=True)
class Grid:
    """`judging` is for a comparison: each run is judged as soon as it is trained."""

    path: Path
    cells: tuple[Cell, ...]
    judging: EvaluationSettings | None = None

    @staticmethod
    def planned(
        path: Path,
        options: Mapping[str, Any],
        methods: list[Any],
        seeds: list[int],
        judging: EvaluationSettings | None = None,
        given: Callable[[Config], Mapping[str, Any]] = lambda _: {},
    ) -> "Grid":
        """The grid in a new folder, every cell checked before the first one starts. `given` has settings for some runs only."""
        if path.is_file():
            raise FileError(f"{path} is a file: name a folder for the grid")
        if path.is_dir() and any(path.iterdir()):
            raise FileError(f"{path} is not empty: go on with it by --resume, or name another folder with --out")
        cells = []
        for method in methods:
            choice = parse_method(method)
            own = given(build_config(dict(options) | {"method": choice, "seed": seeds[0]}))
            for seed in seeds:
                wanted = resolve_paths(build_config(dict(options) | {"method": choice, "seed": seed} | dict(own)))
                safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in format_choice(choice))
                cells.append(Cell(f"{safe}-seed{seed}", wanted.model_dump(mode="json")))
        names = [cell.name for cell in cells]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(f"the grid has {twice[0]} more than once")
        grid = Grid(path, tuple(cells), judging)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {path}: {error.strerror}; name another with --out") from error
        write_file(path / "grid.yaml", yaml.safe_dump({cell.name: cell.options for cell in cells}, sort_keys=False))
        return grid

    @staticmethod
    def opened(path: Path, judging: EvaluationSettings | None = None) -> "Grid":
        content = read_settings(path / "grid.yaml")
        for name, options in content.items():
            if not isinstance(options, dict):
                raise FileError(f"{path / 'grid.yaml'} must hold the settings of each run, got {options!r} for {name}")
        cells = [Cell(name, build_config(options, name).model_dump(mode="json")) for name, options in content.items()]
        return Grid(path, tuple(cells), judging)

    def finished(self, cell: Cell) -> bool:
        run = Run(self.path / cell.name)
        return run.is_finished and (self.judging is None or run.is_judged)

    def run(self, workers: str = "1", report: Report | None = None, *, whole: bool = True) -> list[dict[str, Any]]:
        """Run what is not finished; a dead worker's runs are taken up again. Returns a state for every cell.

        Runs that fail are an error in the end, unless the grid need not be `whole`: then only if all of them do. `report` is
        told the states whenever they change; grid.csv has them, too.
        """
        check_workers(workers)
        for cell in self.cells:  # what failed may be tried again
            (self.path / cell.name / "failed.txt").unlink(missing_ok=True)
        with self.watched(report):
            for _ in range(ATTEMPTS):
                left = [cell for cell in self.cells if not self.finished(cell) and not self.failed(cell)]
                if not left:
                    break
                try:
                    everywhere(left, self.path, workers, self.judging)
                except WorkerDied as error:
                    warnings.warn(f"a worker died ({error}); going on with what is left", stacklevel=2)
        lost = [cell.name for cell in self.cells if not self.finished(cell)]
        if lost and (whole or len(lost) == len(self.cells)):
            reason = self.failed(next(cell for cell in self.cells if cell.name in lost)) or "its worker died again and again"
            raise PluribusError(f"{len(lost)} of {len(self.cells)} runs did not finish; {lost[0]}: {reason}")
        return self.states()

    @contextlib.contextmanager
    def watched(self, report: Report | None) -> Iterator[None]:
        """Look at the folders twice a second: they tell the same wherever the runs are."""
        done = threading.Event()

        def look() -> None:
            before: list[dict[str, Any]] = []
            while True:
                last = done.wait(0.5)
                states = self.states()
                if states != before:
                    self.record(states)
                    if report is not None:
                        report(states)
                before = states
                if last:
                    return

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def failed(self, cell: Cell) -> str:
        path = self.path / cell.name / "failed.txt"
        return path.read_text().strip() if path.is_file() else ""

    def states(self) -> list[dict[str, Any]]:
        """How far every run is, as its folder tells: the same wherever it runs."""
        return [state(Run(self.path / cell.name), cell, self.judging is not None) for cell in self.cells]

    def record(self, states: list[dict[str, Any]]) -> None:
        """The table so far, as grid.csv."""
        names = list(dict.fromkeys(name for each in states for name in each["scores"]))
        text = io.StringIO()
        table = csv.writer(text)
        table.writerow(["run", "method", "seed", "state", *names, "seconds"])
        for cell, each in zip(self.cells, states, strict=True):
            scores = [each["scores"].get(name, "") for name in names]
            table.writerow([cell.name, each["method"], each["seed"], each["state"], *scores, each.get("seconds", "")])
        write_file(self.path / "grid.csv", text.getvalue())


class WorkerDied(Exception):
    """The process or the machine, not the run."""


def state(run: Run, cell: Cell, judging: bool = False) -> dict[str, Any]:
    about: dict[str, Any] = {"method": cell.method, "seed": cell.seed, "state": "waiting", "scores": {}}
    failed = (run.path / "failed.txt").is_file()
    if run.is_finished:
        result = run.read_json("result.json")
        now = "done" if run.is_judged or not judging else "failed" if failed else "judging"
        return about | {"state": now, "scores": result["scores"], "seconds": result["seconds"]}
    if failed:
        return about | {"state": "failed"}
    if (run.path / "metrics.csv").is_file():
        with (run.path / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        if rows:
            last = {k.removeprefix("validation_"): float(v) for k, v in rows[-1].items() if k.startswith("validation_") and v}
            return about | {"state": f"epoch {rows[-1]['epoch']}/{cell.options['epochs']}", "scores": last}
    return about | ({"state": "started"} if run.path.is_dir() else {})


def one(options: dict[str, Any], path: str, judging: dict[str, Any] | None = None, threads: int = 1) -> str:
    """What a worker does: one run, from wherever it is, and its judgement. An error of the run is written down, not thrown."""
    import torch

    import pluribus  # noqa: F401  the methods

    from ..training.interrupts import Interrupted
    from .evaluation import judge_run
    from .training import train_run

    folder, before = Path(path), torch.get_num_threads()
    try:
        with ALONE:
            torch.set_num_threads(threads)
            train_run(build_config(options), folder, resume=True, progress=False, wait=True)
            if judging is not None and not Run(folder).is_judged:
                judge_run(folder, build_evaluation_settings(**judging))
    except Interrupted:  # by a person: the run did not fail, and the next one must not begin
        raise
    except Exception as error:  # whatever it is, the other runs go on
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "failed.txt", f"{type(error).__name__}: {error}\n")
    finally:
        torch.set_num_threads(before)  # it may be the caller's own process
    return path


def ends_with(owner: int | None) -> None:
    while os.getppid() == owner:
        time.sleep(0.5)
    os._exit(1)


def everywhere(cells: list[Cell], path: Path, workers: str, judging: EvaluationSettings | None = None) -> None:
    """All cells, on the workers that `workers` names."""
    told = None if judging is None else judging.model_dump(mode="json")
    dispatched([(one, (cell.options, str((path / cell.name).resolve()), told)) for cell in cells], workers)


def dispatched(tasks: list[tuple[Callable[..., Any], tuple[Any, ...]]], workers: str) -> None:
    """Calls that do not need one another, through joblib. Each gets `threads` besides its arguments."""
    import joblib

    owner = os.getpid() if workers.isdecimal() else None
    try:
        with placed(workers) as (backend, count, threads):
            jobs = [joblib.delayed(owned)(owner, call, *arguments, threads=threads) for call, arguments in tasks]
            with joblib.parallel_config(backend=backend, n_jobs=count):
                joblib.Parallel(batch_size=1, pre_dispatch="all")(jobs)
    except Exception as error:
        if type(error).__name__ in ("TerminatedWorkerError", "KilledWorker", "BrokenProcessPool", "WorkerCrashedError"):
            raise WorkerDied(type(error).__name__) from error
        raise


def owned(owner: int | None, call: Callable[..., Any], *arguments: Any, threads: int) -> Any:
    """A worker on this machine ends with the process that owns it, however that ended; what was saved is taken up again."""
    if owner not in (None, os.getpid()):
        threading.Thread(target=ends_with, args=(owner,), daemon=True).start()
        keep_freed_memory()
    return call(*arguments, threads=threads)


def check_workers(workers: str) -> None:
    """What can be said before anything is written."""
    kind, _, address = workers.partition("://")
    if kind in ("ray", "dask") and (kind == "ray" or address):
        if importlib.util.find_spec(kind) is None:
            raise ImportError(f"--workers {workers} needs {kind}: pip install 'pluribus[{kind}]'")
        if kind == "dask":
            check_answers(address)
        return
    if not workers.isdecimal() or int(workers) < 1:
        raise ConfigError(f"--workers must be a number of processes, dask://host:port or ray, got {workers!r}")


def check_answers(address: str) -> None:
    """Somebody must listen there; Dask itself would try for long."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"--workers must be dask://host:port, got dask://{address}")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"no Dask scheduler answers at {address} ({reason}): start one with `dask scheduler`") from error


@contextlib.contextmanager
def placed(workers: str) -> Iterator[tuple[str, int, int]]:
    """Joblib's backend, the number of jobs at once, and threads for each."""
    if workers.startswith("dask://"):
        from dask.distributed import Client

        with Client(f"tcp://{workers.removeprefix('dask://')}"):  # joblib takes the client that is open
            yield "dask", -1, 1
    elif workers.startswith("ray"):
        import ray
        from ray.util.joblib import register_ray

        if not ray.is_initialized():
            ray.init(address=workers if workers.startswith("ray://") else None, log_to_driver=False)
        register_ray()
        yield "ray", -1, 1
    else:
        count = int(workers)
        yield "loky", count, max(1, torch.get_num_threads() // count)


def seeds_of(text: str | None, first: Any) -> list[int]:
    """`3` → three seeds from the first on; `0,5,7` → these.

    >>> seeds_of("3", 0), seeds_of("5,7", 0), seeds_of(None, 4)
    ([0, 1, 2], [5, 7], [4])
    """
    try:
        start = int(first)
    except (TypeError, ValueError):
        raise ConfigError(f"seed must be a whole number, got {first!r}") from None
    if text is None:
        return [start]
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"seeds must be a number of them, or seeds between commas, got {text!r}") from None
    if len(numbers) > 1:
        return numbers
    if numbers[0] < 1:
        raise ConfigError(f"seeds must be at least 1, got {numbers[0]}")
    return list(range(start, start + numbers[0]))
