"""Ctrl-C and SIGTERM: the step is finished, the run is saved, and a resumed run ends as an uninterrupted one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SMALL = ["--data", "digits", "--rows", "300", "--batch-size", "16", "--epochs", "4", "--checkpoint-every", "5"]
COMMAND = [sys.executable, "-m", "pluribus", "train", "--quiet", *SMALL, "--model", "mlp", "--method", "mimo"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def interrupt_run(folder: Path, number: int, *flags: str) -> str:
    """Send a signal to a run after its first checkpoint, and return what it prints."""
    command = [*COMMAND, *flags, "--out", "run"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not list(folder.glob("run/checkpoints/step-*")):
        time.sleep(0.002)
        assert process.poll() is None
    process.send_signal(number)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in printed
    return printed


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The weights of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    subprocess.run([*COMMAND, "--out", "run"], cwd=folder, check=True, capture_output=True, env=ENVIRONMENT)
    return (folder / "run/weights.safetensors").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_saves_and_says_how_to_go_on(number, tmp_path, uninterrupted):
    assert "pluribus train --resume run" in interrupt_run(tmp_path, number)
    assert not (tmp_path / "run/weights.safetensors").exists()
    resume = [sys.executable, "-m", "pluribus", "train", "--resume", "run", "--quiet"]
    subprocess.run(resume, cwd=tmp_path, check=True, capture_output=True, env=ENVIRONMENT)
    assert (tmp_path / "run/weights.safetensors").read_bytes() == uninterrupted


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_of_two_processes_is_asked_and_both_stop(number, tmp_path):
    assert interrupt_run(tmp_path, number, "--devices", "2", "--epochs", "40").count("pluribus train --resume run") == 1
