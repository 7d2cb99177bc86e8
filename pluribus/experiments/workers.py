"""The workers that run calls: local processes, a Dask cluster or Ray, each through joblib."""

import contextlib
import importlib.util
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..core.allocator import keep_freed_memory
from ..core.errors import PluribusError

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, and its arguments."""
DEATHS = ("TerminatedWorkerError", "KilledWorker", "BrokenProcessPool", "WorkerCrashedError")
"""How loky, Dask and Ray name the death of a worker. The names are compared because Dask and Ray need not be installed."""


class WorkerDied(Exception):
    """A process or machine that ran a call ended; the call itself raised nothing."""


class WorkersError(PluribusError, ValueError):
    """--workers names no workers, or none that answer."""


def check_workers(workers: str) -> None:
    """Check the name of the workers before anything is written.

    Args:
        workers: a number of processes, `dask://host:port`, `ray` or `ray://host:port`.

    Raises:
        WorkersError: if it is none of these, or if no Dask scheduler answers.
        ImportError: if Dask or Ray is not installed.

    >>> check_workers("2")
    >>> check_workers("many")
    Traceback (most recent call last):
    pluribus.experiments.workers.WorkersError: --workers must be a number of processes, dask://host:port or ray, got 'many'
    """
    kind, _, address = workers.partition("://")
    if kind == "ray" or (kind == "dask" and address):
        if importlib.util.find_spec(kind) is None:
            raise ImportError(f"--workers {workers} needs {kind}: pip install 'pluribus[{kind}]'")
        if kind == "dask":
            _check_scheduler(address)
        return
    if not workers.isdecimal() or int(workers) < 1:
        raise WorkersError(f"--workers must be a number of processes, dask://host:port or ray, got {workers!r}")


def run_calls(calls: Sequence[Call], workers: str) -> None:
    """Run calls that do not need one another, and wait for all of them.

    Args:
        calls: functions with their arguments. Each function also gets `threads`, the number of threads that it may use.
        workers: as `check_workers` takes it. With "1" the calls run one after another in this process.

    Raises:
        WorkerDied: if a worker ended before its call did.
        Whatever a call raises.
    """
    import joblib

    owner = os.getpid() if workers.isdecimal() else None
    try:
        with worker_backend(workers) as (backend, count, threads):
            tasks = [joblib.delayed(_run_call)(owner, call, *arguments, threads=threads) for call, arguments in calls]
            with joblib.parallel_config(backend=backend, n_jobs=count), warnings.catch_warnings():
                # Workers keep freed memory, which joblib takes for a leak: it replaces the worker between two calls, and warns.
                warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
                joblib.Parallel(batch_size=1, pre_dispatch="all")(tasks)
    except Exception as error:
        if type(error).__name__ in DEATHS:
            raise WorkerDied(type(error).__name__) from error
        raise


@contextlib.contextmanager
def worker_backend(workers: str) -> Iterator[tuple[str, int, int]]:
    """Open the workers: joblib's name for them, how many calls run at once, and the threads of each."""
    if workers.startswith("dask://"):
        from dask.distributed import Client

        with Client(f"tcp://{workers.removeprefix('dask://')}"):  # joblib uses the client that is open
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


def _run_call(owner: int | None, call: Callable[..., Any], *arguments: Any, threads: int) -> Any:
    """Run a call in a worker; a worker on this machine ends together with the process that owns it."""
    if owner not in (None, os.getpid()):
        threading.Thread(target=_exit_with, args=(owner,), daemon=True).start()
        keep_freed_memory()
    return call(*arguments, threads=threads)


def _exit_with(owner: int | None) -> None:
    """Wait until the owner has ended, however it did, and end this process."""
    while os.getppid() == owner:
        time.sleep(0.5)
    os._exit(1)


def _check_scheduler(address: str) -> None:
    """Raise if no Dask scheduler answers; Dask itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise WorkersError(f"--workers must be dask://host:port, got dask://{address}")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WorkersError(f"no Dask scheduler answers at {address} ({reason}): start one with `dask scheduler`") from error
