"""The engine: every job runs once, whatever happens to the workers."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from pluribus.experiments import Job, describe_unfinished, read_failure, run_jobs
from pluribus.experiments import engine as engines
from pluribus.experiments.jobs import run_job
from pluribus.experiments.workers import WorkerDied

from . import calls


def create_jobs(folder, *functions, **options):
    return [
        Job(name, folder / name, call, (str(folder / name),), **options)
        for name, call in ((f"job{index}", call) for index, call in enumerate(functions))
    ]


def is_finished(job):
    return (job.folder / "result.txt").is_file()


def counts(jobs):
    return [len((job.folder / "count.txt").read_text()) for job in jobs]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_job_runs_once_and_a_finished_one_never_again(tmp_path, workers):
    jobs = create_jobs(tmp_path, *[calls.write_result] * 3)
    assert run_jobs(jobs[:2], workers, is_finished=is_finished) == {}
    assert run_jobs(jobs, workers, is_finished=is_finished) == {}
    assert counts(jobs) == [1, 1, 1]


def test_a_job_that_fails_is_named_with_its_error_and_the_others_finish(tmp_path):
    jobs = create_jobs(tmp_path, calls.write_result, calls.fail, calls.write_result)
    unfinished = run_jobs(jobs, is_finished=is_finished)
    assert unfinished == {"job1": "ValueError: the value must not be negative"}
    assert read_failure(jobs[1].folder) == unfinished["job1"]
    assert describe_unfinished(unfinished, 3, "jobs").startswith("1 of 3 jobs did not finish; job1: ValueError")
    assert counts([jobs[0], jobs[2]]) == [1, 1]


def test_a_job_that_failed_is_tried_again_by_the_next_call(tmp_path):
    run_jobs(create_jobs(tmp_path, calls.fail), is_finished=is_finished)
    again = create_jobs(tmp_path, calls.write_result)
    assert run_jobs(again, is_finished=is_finished) == {}
    assert read_failure(again[0].folder) == ""


def test_a_person_who_stops_a_job_stops_the_next_ones_too_and_none_has_failed(tmp_path):
    jobs = create_jobs(tmp_path, calls.stop, calls.write_result, interrupts=(calls.Stopped,))
    with pytest.raises(calls.Stopped):
        run_jobs(jobs, is_finished=is_finished)
    assert not jobs[1].folder.exists()
    assert [read_failure(job.folder) for job in jobs] == ["", ""]


def test_a_worker_that_dies_costs_no_result(tmp_path):
    jobs = create_jobs(tmp_path, calls.write_result, calls.die_once, calls.write_result_slowly, calls.write_result_slowly)
    with pytest.warns(UserWarning, match="a worker died"):
        assert run_jobs(jobs, "2", is_finished=is_finished) == {}
    assert counts(jobs[1:2]) == [1]


def test_a_job_whose_worker_always_dies_is_given_up(tmp_path, monkeypatch):
    attempts = []

    def die(calls, workers):
        attempts.append(len(calls))
        raise WorkerDied("killed")

    monkeypatch.setattr(engines, "run_calls", die)
    with pytest.warns(UserWarning, match=r"a worker died \(killed\)"):
        unfinished = run_jobs(create_jobs(tmp_path, calls.write_result), "2", is_finished=is_finished)
    assert unfinished == {"job0": "its worker died every time"}
    assert attempts == [1] * engines.ATTEMPTS


def test_threads_are_shared_out_and_the_callers_own_number_comes_back(tmp_path):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        jobs = create_jobs(tmp_path, calls.write_threads, calls.write_threads)
        run_jobs(jobs, "2", is_finished=is_finished)
        assert [(job.folder / "threads.txt").read_text().split()[0] for job in jobs] == ["2", "2"]
        run_job(create_jobs(tmp_path, calls.write_threads)[0], threads=1)
        assert (tmp_path / "job0" / "threads.txt").read_text() == f"1 {os.getpid()}"
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def test_jobs_in_threads_of_one_process_run_one_at_a_time(tmp_path):
    """A Dask worker has as many threads as cores, and all of them draw from one generator."""
    jobs = [Job(f"{name}{s}", tmp_path, calls.draw_numbers, (str(tmp_path / f"{name}{s}"), s)) for name in "ab" for s in (0, 1)]
    run_job(jobs[0])
    run_job(jobs[1])
    threads = [threading.Thread(target=run_job, args=(job,)) for job in jobs[2:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        assert (tmp_path / f"a{seed}" / "result.txt").read_text() == (tmp_path / f"b{seed}" / "result.txt").read_text()


def test_states_are_reported_when_they_change_and_after_the_last_job(tmp_path):
    jobs = create_jobs(tmp_path, *[calls.write_result_slowly] * 3)
    seen = []
    run_jobs(
        *(jobs, "1"),
        is_finished=is_finished,
        read_states=lambda: [is_finished(job) for job in jobs],
        report=seen.append,
        poll=0.02,
    )
    assert seen[-1] == [True, True, True]
    assert len(seen) > 2, "states between the first and the last are reported too"
    assert all(first != second for first, second in itertools.pairwise(seen))


def test_an_error_of_the_report_is_tried_again_and_raised_if_it_stays(tmp_path):
    jobs, attempts = create_jobs(tmp_path, calls.write_result_slowly), []

    def fail_first(states):
        attempts.append(states)
        if len(attempts) == 1:
            raise OSError("the file is half written")

    states = {"is_finished": is_finished, "read_states": lambda: 0, "poll": 0.02}
    run_jobs(jobs, report=fail_first, **states)
    assert attempts == [0, 0]

    def always_fail(states):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        run_jobs(jobs, report=always_fail, **states)


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_workers_end_with_the_process_that_owns_them(tmp_path, number):
    script = f"""
from pathlib import Path
from pluribus.experiments import run_jobs
from tests.experiments import calls
from tests.experiments.test_engine import create_jobs, is_finished
run_jobs(create_jobs(Path({str(tmp_path)!r}), calls.wait_forever, calls.wait_forever), "2", is_finished=is_finished)
"""
    owner = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    while sum(bool(file.read_text()) for file in tmp_path.glob("*/pid.txt")) < 2:
        assert owner.poll() is None
        time.sleep(0.01)
    workers = [int(file.read_text()) for file in tmp_path.glob("*/pid.txt")]
    assert owner.pid not in workers
    owner.send_signal(number)
    owner.wait()
    patience = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < patience
        time.sleep(0.05)


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_runs_every_job(tmp_path):
    pytest.importorskip("distributed")
    root = Path(__file__).parents[2]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{(port := free.getsockname()[1])}"
    base = [sys.executable, "-m"]
    scheduler = subprocess.Popen([*base, "distributed.cli.dask_scheduler", "--port", str(port), "--dashboard-address", ":0"])
    arguments = [*base, "distributed.cli.dask_worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    workers = [subprocess.Popen(arguments, env=environment, cwd=tmp_path) for _ in range(2)]
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        jobs = create_jobs(tmp_path, *[calls.write_result_slowly] * 20)

        def kill() -> None:
            while not any(map(is_finished, jobs)):
                time.sleep(0.02)
            workers[0].kill()

        thread = threading.Thread(target=kill)
        thread.start()
        assert run_jobs(jobs, f"dask://{address}", is_finished=is_finished) == {}
        thread.join()
        assert workers[0].wait() != 0
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()
