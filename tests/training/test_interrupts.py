"""Ctrl-C and SIGTERM: the step is finished, the run is saved, and a resumed run ends as an uninterrupted one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..processes import fork_pluribus

SMALL = ["--data", "digits", "--rows", "300", "--batch-size", "16", "--epochs", "4", "--checkpoint-every", "5"]
TRAIN = ["train", "--quiet", *SMALL, "--model", "mlp", "--method", "mimo"]


def run(words: list[str], folder: Path, number: int | None = None) -> tuple[int | None, str]:
    """Run a command to its end, or until it stops after a signal, sent after the first checkpoint: exit code and output."""
    with open(folder / "printed", "w") as file:
        child = fork_pluribus(words, folder, output=file.fileno())
        if number is not None:
            wait_for_checkpoint(folder, child.is_alive)
            os.kill(child.pid, number)
        child.join(120)
    return child.exitcode, (folder / "printed").read_text()


def wait_for_checkpoint(folder, is_alive):
    while not list(folder.glob("run/checkpoints/step-*")):
        time.sleep(0.002)
        assert is_alive()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The weights of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert run([*TRAIN, "--out", "run"], folder)[0] == 0
    return (folder / "run/weights.safetensors").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_saves_and_says_how_to_go_on(number, tmp_path, uninterrupted):
    code, printed = run([*TRAIN, "--out", "run"], tmp_path, number)
    assert code == 130
    assert "pluribus train --resume run" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "run/weights.safetensors").exists()
    assert run(["train", "--resume", "run", "--quiet"], tmp_path)[0] == 0
    assert (tmp_path / "run/weights.safetensors").read_bytes() == uninterrupted


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_of_two_processes_is_asked_and_both_stop(number, tmp_path):
    """Not forked: Lightning starts the second process by the command line of the first."""
    command = [sys.executable, "-m", "pluribus", *TRAIN, "--devices", "2", "--epochs", "40", "--out", "run"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    wait_for_checkpoint(tmp_path, lambda: process.poll() is None)
    process.send_signal(number)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert printed.count("pluribus train --resume run") == 1
