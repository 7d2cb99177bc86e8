"""Independent runs: here, and on a Dask cluster one of whose workers is killed."""

import csv
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

from pluribus.core.errors import FileError, PluribusError
from pluribus.runs import grid as grids
from pluribus.runs.config import ConfigError, build_config
from pluribus.runs.grid import Grid, seeds_of

SMALL = {"data": "digits", "rows": 200, "model": "mlp:hidden=[16]", "epochs": 2, "batch_size": 32}


def table(grid: Grid) -> list[dict[str, str]]:
    with (grid.path / "grid.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_grid_runs_every_method_with_every_seed(tmp_path):
    grid = Grid.planned(tmp_path / "grid", SMALL, ["single", "mimo:members=2"], [0, 1])
    threads = torch.get_num_threads()
    states = grid.run("1")
    assert torch.get_num_threads() == threads, "a grid in this process leaves it as it was"
    assert [(state["method"], state["seed"], state["state"]) for state in states] == [
        *(("single", 0, "done"), ("single", 1, "done"), ("mimo:members=2", 0, "done"), ("mimo:members=2", 1, "done")),
    ]
    assert [row["state"] for row in table(grid)] == ["done"] * 4
    assert states[0]["scores"] != states[1]["scores"], "seeds differ"
    written = {path: path.stat().st_mtime_ns for path in grid.path.glob("*/weights.safetensors")}
    assert Grid.opened(grid.path).run("1") == states
    assert {path: path.stat().st_mtime_ns for path in written} == written, "what is finished is not done again"


def test_a_local_worker_that_dies_does_not_lose_the_table(tmp_path):
    """The first worker to have written a checkpoint is killed: its runs go on with the next one."""
    grid = Grid.planned(tmp_path / "grid", SMALL | {"epochs": 30}, ["single"], [0, 1, 2, 3])
    killed = []

    def kill() -> None:
        while not list(grid.path.glob("*/checkpoints/step-*")):
            time.sleep(0.01)
        for pid in children():
            if "LokyProcess" in command(pid):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.warns(UserWarning, match="a worker died"):
        states = grid.run("2")
    thread.join()
    assert killed
    assert [state["state"] for state in states] == ["done"] * 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_owns_them(tmp_path, number):
    grid = Grid.planned(tmp_path / "grid", SMALL | {"epochs": 5000}, ["single"], [0, 1])
    script = f"from pathlib import Path; from pluribus.runs.grid import Grid; Grid.opened(Path({str(grid.path)!r})).run('2')"
    owner = subprocess.Popen([sys.executable, "-c", script])
    while len(list(grid.path.glob("*/checkpoints/step-*"))) < 2:
        assert owner.poll() is None
        time.sleep(0.01)
    workers = children(owner.pid)
    assert sum("LokyProcess" in command(pid) for pid in workers) == 2
    owner.send_signal(number)
    owner.wait()
    patience = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < patience
        time.sleep(0.05)


def children(pid: int | str = "self") -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.slow
def test_a_dask_cluster_that_loses_a_worker_completes_the_grid(tmp_path):
    pytest.importorskip("distributed")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
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
        grid = Grid.planned(tmp_path / "grid", SMALL | {"epochs": 15}, ["single", "inner"], [0, 1, 2, 3])

        def kill() -> None:
            while len(list(grid.path.glob("*/result.json"))) < 1:
                time.sleep(0.02)
            workers[0].kill()

        thread = threading.Thread(target=kill)
        thread.start()
        states = grid.run(f"dask://{address}")
        thread.join()
        assert workers[0].poll() is not None
        assert [state["state"] for state in states] == ["done"] * 8
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def test_runs_in_threads_of_one_worker_do_not_disturb_one_another(tmp_path):
    """A Dask worker has as many threads as cores, and all draw from one generator."""
    options = [build_config(SMALL | {"method": "mimo", "seed": seed}).model_dump(mode="json") for seed in (0, 1)]
    for seed in (0, 1):
        grids.one(options[seed], str(tmp_path / f"alone{seed}"), 1)
    threads = [threading.Thread(target=grids.one, args=(options[s], str(tmp_path / f"both{s}"), 1)) for s in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        alone, both = (tmp_path / f"{name}{seed}" / "weights.safetensors" for name in ("alone", "both"))
        assert both.read_bytes() == alone.read_bytes()


def test_a_grid_that_is_asked_to_stop_begins_no_other_run_and_goes_on_later(tmp_path):
    flags = ["--data", "digits", "--rows", "200", "--model", "small-cnn", "--batch-size", "4", "--epochs", "4", "--seeds", "2"]
    command = [sys.executable, "-m", "pluribus", "train", "--quiet"]
    process = subprocess.Popen([*command, *flags, "--out", "grid"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("grid/*/checkpoints/step-*")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "pluribus train --resume grid" in said
    assert not list(tmp_path.glob("grid/*/failed.txt"))
    assert not (tmp_path / "grid/single-seed1").exists()
    subprocess.run([*command, "--resume", "grid"], cwd=tmp_path, check=True, capture_output=True)
    assert len(list(tmp_path.glob("grid/*/result.json"))) == 2


def test_a_grid_knows_its_data_wherever_a_worker_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("a,y\n" + "\n".join(f"{row},{row % 2}" for row in range(40)))
    grid = Grid.planned(Path("grid"), {"data": "table.csv", "data_dir": "here"}, ["single"], [0])
    assert grid.cells[0].options["data"]["name"] == str(tmp_path / "table.csv")
    assert grid.cells[0].options["data_dir"] == str(tmp_path / "here")


def test_a_run_that_fails_is_named_and_the_others_finish(tmp_path):
    grid = Grid.planned(tmp_path / "grid", SMALL | {"lr": 1e30, "optimizer": "sgd"}, ["single"], [0])
    with pytest.raises(PluribusError, match="1 of 1 runs did not finish; single-seed0: Diverged: the loss became"):
        grid.run("1")
    assert table(grid)[0]["state"] == "failed"


@pytest.mark.parametrize(("text", "seeds"), [("2", [7, 8]), ("3,1", [3, 1]), (None, [7])])
def test_seeds_are_counted_or_listed(text, seeds):
    assert seeds_of(text, 7) == seeds


@pytest.mark.parametrize("text", ["0", "x", "-1"])
def test_seeds_that_are_none_are_refused(text):
    with pytest.raises(ConfigError, match="seeds must be"):
        seeds_of(text, 0)


def test_every_cell_is_checked_before_the_first_starts(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'mimo'"):
        Grid.planned(tmp_path / "grid", SMALL, ["single", "mino"], [0])
    assert not (tmp_path / "grid").exists()
    with pytest.raises(ConfigError, match="more than once"):
        Grid.planned(tmp_path / "grid", SMALL, ["single", "single"], [0])
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        Grid.planned(tmp_path / "full", SMALL, ["single"], [0])


@pytest.mark.parametrize("workers", ["0", "-1", "many", "dask:/x"])
def test_workers_that_are_none_are_refused(workers):
    with pytest.raises(ConfigError, match="--workers must be"):
        grids.check_workers(workers)
