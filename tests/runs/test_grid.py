"""Grids of runs: planning, running and resuming them. tests/experiments has the tests of the engine itself."""

import csv
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

from pluribus.core.errors import FileError, PluribusError
from pluribus.experiments.jobs import run_job
from pluribus.runs.config import ConfigError
from pluribus.runs.grid import Grid, parse_seeds
from tests.cli.conftest import call_pluribus
from tests.processes import fork_pluribus

SMALL = {"data": "digits", "rows": 200, "model": "mlp:hidden=[16]", "epochs": 2, "batch_size": 32}


def table(grid: Grid) -> list[dict[str, str]]:
    with (grid.path / "grid.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_grid_runs_every_method_with_every_seed(tmp_path):
    grid = Grid.plan(tmp_path / "grid", SMALL, ["single", "mimo:members=2"], [0, 1])
    threads = torch.get_num_threads()
    states = grid.run("1")
    assert torch.get_num_threads() == threads, "a grid in this process leaves it as it was"
    assert [(state["method"], state["seed"], state["state"]) for state in states] == [
        *(("single", 0, "done"), ("single", 1, "done"), ("mimo:members=2", 0, "done"), ("mimo:members=2", 1, "done")),
    ]
    assert [row["state"] for row in table(grid)] == ["done"] * 4
    assert states[0]["scores"] != states[1]["scores"], "seeds differ"
    written = {path: path.stat().st_mtime_ns for path in grid.path.glob("*/weights.safetensors")}
    assert Grid.open(grid.path).run("1") == states
    assert {path: path.stat().st_mtime_ns for path in written} == written, "what is finished is not done again"


def test_runs_in_threads_of_one_worker_do_not_disturb_one_another(tmp_path):
    """A Dask worker has as many threads as cores, and all draw from one generator."""
    alone = Grid.plan(tmp_path / "alone", SMALL, ["mimo"], [0, 1])
    both = Grid.plan(tmp_path / "both", SMALL, ["mimo"], [0, 1])
    for cell in alone.cells:
        run_job(alone.make_job(cell))
    threads = [threading.Thread(target=run_job, args=(both.make_job(cell),)) for cell in both.cells]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for cell in alone.cells:
        files = [grid.path / cell.name / "weights.safetensors" for grid in (alone, both)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_grid_that_is_asked_to_stop_begins_no_other_run_and_goes_on_later(tmp_path):
    flags = ["--data", "digits", "--rows", "200", "--model", "small-cnn", "--batch-size", "4", "--epochs", "4", "--seeds", "2"]
    with open(tmp_path / "printed", "w") as file:
        process = fork_pluribus(["train", "--quiet", *flags, "--out", "grid"], tmp_path, output=file.fileno())
    while not list(tmp_path.glob("grid/*/checkpoints/step-*")):
        time.sleep(0.01)
        assert process.is_alive()
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == 130
    assert "pluribus train --resume grid" in (tmp_path / "printed").read_text()
    assert not list(tmp_path.glob("grid/*/failed.txt"))
    assert not (tmp_path / "grid/single-seed1").exists()
    assert call_pluribus("train", "--quiet", "--resume", str(tmp_path / "grid")) == 0
    assert len(list(tmp_path.glob("grid/*/result.json"))) == 2


def test_a_grid_knows_its_data_wherever_a_worker_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("a,y\n" + "\n".join(f"{row},{row % 2}" for row in range(40)))
    grid = Grid.plan(Path("grid"), {"data": "table.csv", "data_dir": "here"}, ["single"], [0])
    assert grid.cells[0].options["data"]["name"] == str(tmp_path / "table.csv")
    assert grid.cells[0].options["data_dir"] == str(tmp_path / "here")


def test_a_run_that_fails_is_named_and_the_others_finish(tmp_path):
    grid = Grid.plan(tmp_path / "grid", SMALL | {"lr": 1e30, "optimizer": "sgd"}, ["single"], [0])
    with pytest.raises(PluribusError, match="1 of 1 runs did not finish; single-seed0: Diverged: the loss became"):
        grid.run("1")
    assert table(grid)[0]["state"] == "failed"


@pytest.mark.parametrize(("text", "seeds"), [("2", [7, 8]), ("3,1", [3, 1]), (None, [7])])
def test_seeds_are_counted_or_listed(text, seeds):
    assert parse_seeds(text, 7) == seeds


@pytest.mark.parametrize("text", ["0", "x", "-1"])
def test_seeds_that_are_none_are_refused(text):
    with pytest.raises(ConfigError, match="seeds must be"):
        parse_seeds(text, 0)


def test_every_cell_is_checked_before_the_first_starts(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'mimo'"):
        Grid.plan(tmp_path / "grid", SMALL, ["single", "mino"], [0])
    assert not (tmp_path / "grid").exists()
    with pytest.raises(ConfigError, match="more than once"):
        Grid.plan(tmp_path / "grid", SMALL, ["single", "single"], [0])
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        Grid.plan(tmp_path / "full", SMALL, ["single"], [0])
