"""A job: one call with a folder of its own, which a worker runs without needing any other job.

<folder>/failed.txt   the error of a job that failed, and the traceback of an error that nobody foresaw; every other file in the
                      folder belongs to the call
"""

import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..core.errors import PluribusError
from ..core.files import write_file

FAILURE = "failed.txt"
LONGEST = 2000
"""Letters of an error that are reported."""
ONE_AT_A_TIME = threading.Lock()
"""A process runs one job at a time: a Dask worker has several threads, and all of them draw from one random generator."""


@dataclass(frozen=True)
class Job:
    """A call that a worker runs.

    Args:
        name: what messages call the job.
        folder: where the job works. An absolute path, because a worker may stand in another directory.
        call: a function of a module, so that it can be pickled. It leaves its result in `folder`, and continues what an
            earlier attempt left there.
        arguments: what `call` gets; they must be picklable.
        interrupts: the errors by which a person stops the job. They are raised to the caller of `run_jobs`; every other error
            is recorded as the failure of this job alone.
    """

    name: str
    folder: Path
    call: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    interrupts: tuple[type[BaseException], ...] = ()


def run_job(job: Job, threads: int = 1) -> None:
    """Run one job in this process, and write its error to failed.txt.

    Args:
        job: what to run.
        threads: how many threads torch uses meanwhile; afterwards it uses as many as before.

    Raises:
        KeyboardInterrupt and the job's `interrupts`; no other error.
    """
    with ONE_AT_A_TIME:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            job.call(*job.arguments)
        except job.interrupts:
            raise
        except Exception as error:
            job.folder.mkdir(parents=True, exist_ok=True)
            write_file(job.folder / FAILURE, describe_failure(error))
        finally:
            torch.set_num_threads(before)


def read_failure(folder: Path) -> str:
    """Return the error that a job left in its folder, or "" if it has not failed.

    >>> read_failure(Path("no such folder"))
    ''
    """
    file = folder / FAILURE
    if not file.is_file():
        return ""
    with file.open(encoding="utf-8", errors="replace") as opened:
        return opened.readline(LONGEST).strip() or "for a reason that is not known"


def describe_failure(error: Exception) -> str:
    """The content of failed.txt: the error in one line, and below it the traceback of an error that nobody foresaw."""
    line = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
    trace = [] if isinstance(error, PluribusError) else ["", *traceback.format_exception(error)]
    return "\n".join([line, *trace, ""]).encode("utf-8", "replace").decode()


def forget_failure(folder: Path) -> None:
    """Remove the error that a job left, so that it is tried again."""
    (folder / FAILURE).unlink(missing_ok=True)
