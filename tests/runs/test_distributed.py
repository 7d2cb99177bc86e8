"""Several processes take the steps of one. Here on the CPU, with gloo."""

import csv
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.processes import fork_pluribus

RUN = ["train", "--data", "digits", "--rows", "500", "--batch-size", "48", "--checkpoint-every", "7", "--quiet"]
PLAIN = ["--model", "small-cnn", "--method", "inner", "--epochs", "2"]


def run(folder: Path, *flags: str, launcher: tuple[str, ...] = ("-m", "pluribus")) -> None:
    command = [sys.executable, *launcher, *RUN, *flags, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("The run is in") == 1, "one of the processes speaks for all"


def losses(folder: Path) -> list[dict[str, float]]:
    with (folder / "metrics.csv").open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def run_forked(folder: Path, *flags: str) -> None:
    """The same in a forked process, which need not import torch again; those that it starts are new ones."""
    printed = folder.with_name("printed")
    with printed.open("w") as file:
        child = fork_pluribus([*RUN, *flags, "--out", str(folder)], folder.parent, output=file.fileno())
        child.join(300)
    assert child.exitcode == 0, printed.read_text()[-2000:]
    assert printed.read_text().count("The run is in") == 1, "one of the processes speaks for all"


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    run_forked(folder, *PLAIN)
    return folder


def check_same(folder: Path, alone: Path) -> None:
    for ours, theirs in zip(losses(folder), losses(alone), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
    ours, theirs = load_file(folder / "weights.safetensors"), load_file(alone / "weights.safetensors")
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():  # Adam makes a rounding error of the gradient a step of up to lr = 0.001, now and then
        assert (ours[name].double() - weight.double()).abs().mean() < 1e-4, name


def test_two_processes_have_the_losses_of_one_at_the_same_batch(alone, tmp_path):
    """500 rows less a tenth in batches of 48: the last one is not full, and its halves differ in size."""
    run_forked(tmp_path / "run", *PLAIN, "--devices", "2")
    check_same(tmp_path / "run", alone)


@pytest.mark.slow
def test_sharded_weights_have_the_losses_of_one_process(alone, tmp_path):
    run(tmp_path / "run", *PLAIN, "--devices", "2", "--strategy", "fsdp")
    check_same(tmp_path / "run", alone)


@pytest.mark.slow
def test_torchrun_launches_it_too(alone, tmp_path):
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "pluribus")
    run(tmp_path / "run", *PLAIN, "--devices", "2", launcher=launcher)
    check_same(tmp_path / "run", alone)


@pytest.mark.slow
def test_two_machines_are_told_apart_by_their_environment(alone, tmp_path):
    """Both are this one: each starts its own process, and they meet at an address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pluribus", *RUN, *PLAIN, "--nodes", "2", "--out", str(tmp_path / "run")]
    nodes = [subprocess.Popen(command, env=os.environ | meeting | {"NODE_RANK": str(rank)}) for rank in range(2)]
    assert [node.wait(300) for node in nodes] == [0, 0]
    check_same(tmp_path / "run", alone)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize("method", ["mimo", "mc-dropout", "variance", "variational-dropout", "mixture:parameters=1.5"])
def test_every_kind_of_method_has_the_losses_of_one_process(method, strategy, tmp_path):
    """With a BatchNorm network, in single precision."""
    flags = ["--model", "resnet:depth=8", "--epochs", "1", "--method", method]
    run(tmp_path / "alone", *flags)
    run(tmp_path / "run", *flags, "--devices", "2", "--strategy", strategy)
    for ours, theirs in zip(losses(tmp_path / "run"), losses(tmp_path / "alone"), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
        assert ours["validation_nll"] == pytest.approx(theirs["validation_nll"], rel=1e-3)


@pytest.mark.slow
def test_early_stopping_keeps_the_best_of_sharded_weights(tmp_path):
    for name, more in (("alone", []), ("sharded", ["--devices", "2", "--strategy", "fsdp"])):
        run(tmp_path / name, *PLAIN, "--patience", "5", *more)
    check_same(tmp_path / "sharded", tmp_path / "alone")
    ours, theirs = (load_file(tmp_path / name / "weights.safetensors") for name in ("sharded", "alone"))
    for name in theirs:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("fsdp", "fsdp"), ("fsdp", "ddp"), ("ddp", "fsdp")])
def test_a_checkpoint_goes_on_under_another_strategy(first, second, alone, tmp_path):
    """Stopped after the first of two epochs, by taking the second's checkpoints and the end away."""
    folder = tmp_path / "run"
    run(folder, *PLAIN, "--devices", "2", "--strategy", first)
    for path in [*folder.glob("weights.*"), folder / "result.json"]:
        path.unlink()
    last, _ = sorted(folder.glob("checkpoints/step-*"), reverse=True)
    last.unlink()
    command = [sys.executable, "-m", "pluribus", "train", "--quiet", "--resume", str(folder), "--strategy", second]
    subprocess.run(command, check=True, capture_output=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"})
    check_same(folder, alone)
