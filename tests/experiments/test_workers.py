"""What --workers may name."""

import socket

import pytest

from pluribus.experiments import WorkersError, check_workers
from pluribus.experiments.workers import run_calls

from . import calls


@pytest.mark.parametrize("workers", ["0", "-1", "many", "dask:/x", "dask://", "dask://host", "dask://host:x"])
def test_a_name_that_is_none_of_workers_is_refused(workers):
    with pytest.raises(WorkersError, match="--workers must be"):
        check_workers(workers)


def test_a_scheduler_that_does_not_answer_is_refused_at_once():
    pytest.importorskip("dask")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(WorkersError, match=f"no Dask scheduler answers at 127.0.0.1:{port} .* start one with `dask scheduler`"):
        check_workers(f"dask://127.0.0.1:{port}")


def test_a_number_of_processes_is_accepted():
    check_workers("3")


@pytest.mark.slow
def test_a_worker_that_is_replaced_for_its_memory_is_no_news(recwarn):
    run_calls([(calls.keep_memory, (400,))] * 6, "2")
    assert [str(warning.message) for warning in recwarn] == []
