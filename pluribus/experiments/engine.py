"""Run independent jobs until each is finished or has failed.

Each job has its own folder, and a finished job is never run again. So a worker that dies costs time and no result: the
other workers run its jobs. A job that is lost in this way `ATTEMPTS` times is given up.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.files import remove_leftovers
from .jobs import Job, forget_failure, read_failure, run_job
from .workers import WorkerDied, check_workers, run_calls

ATTEMPTS = 5


def run_jobs(
    jobs: Sequence[Job],
    workers: str = "1",
    *,
    is_finished: Callable[[Job], bool],
    read_states: Callable[[], Any] | None = None,
    report: Callable[[Any], None] | None = None,
    poll: float = 0.5,
) -> dict[str, str]:
    """Run the jobs that are not finished.

    Args:
        jobs: what to run. Jobs that failed in an earlier call are tried again.
        workers: a number of processes, `dask://host:port`, `ray` or `ray://host:port`.
        is_finished: whether a job has left its result; it reads the job's folder, so that it holds for every worker.
        read_states: reads how far the jobs are.
        report: is called with what `read_states` returns whenever that changes, from a thread of this process; the last call
            comes after the last job.
        poll: seconds between two calls of `read_states`.

    Returns:
        The reason for each job that did not finish, by its name; empty if all did.

    Raises:
        WorkersError: if `workers` names none.
        The first job's `interrupts` or KeyboardInterrupt, by which a person stops all jobs.
    """
    check_workers(workers)
    for job in jobs:
        forget_failure(job.folder)
        remove_leftovers(job.folder)
    with watch_states(read_states, report, poll):
        for _ in range(ATTEMPTS):
            left = [job for job in jobs if not is_finished(job) and not read_failure(job.folder)]
            if not left:
                break
            try:
                run_calls([(run_job, (job,)) for job in left], workers)
            except WorkerDied as error:
                warnings.warn(f"a worker died ({error}); its jobs are run again", stacklevel=2)
    return {job.name: read_failure(job.folder) or "its worker died every time" for job in jobs if not is_finished(job)}


def describe_unfinished(unfinished: Mapping[str, str], total: int, noun: str) -> str:
    """Return one sentence about what `run_jobs` returned.

    >>> describe_unfinished({"b": "ValueError: no"}, 3, "runs")
    '1 of 3 runs did not finish; b: ValueError: no'
    """
    name, reason = next(iter(unfinished.items()))
    return f"{len(unfinished)} of {total} {noun} did not finish; {name}: {reason}"


@contextlib.contextmanager
def watch_states(read_states: Callable[[], Any] | None, report: Callable[[Any], None] | None, poll: float) -> Iterator[None]:
    """Report states from a thread whenever they change, and once more at the end if they changed since."""
    if read_states is None or report is None:
        yield
        return
    done = threading.Event()
    errors: list[Exception] = []

    def look() -> None:
        before: Any = None
        is_last = False
        while not is_last:
            is_last = done.wait(poll)
            errors.clear()
            try:
                states = read_states()
                if states != before:
                    report(states)
                before = states
            except (
                Exception
            ) as error:  # a file may be half written: the next look reads it again, and the last one must succeed
                errors.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if errors:
        raise errors[0]
