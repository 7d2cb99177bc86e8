"""Ctrl-C and SIGTERM: the step is finished, the run saved, and it goes on as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SMALL = ["--data", "digits", "--rows", "300", "--batch-size", "16", "--epochs", "40"]
COMMAND = [sys.executable, "-m", "pluribus", "train", "--quiet", *SMALL, "--model", "small-cnn", "--method", "mimo"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def stopped(folder: Path, sent: int, *flags: str) -> str:
    """What a run says that is sent a signal after its first checkpoint."""
    command = [*COMMAND, *flags, "--out", "run"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not list(folder.glob("run/checkpoints/step-*")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_saves_and_says_how_to_go_on(sent, tmp_path):
    assert "pluribus train --resume run" in stopped(tmp_path, sent)
    resume = [sys.executable, "-m", "pluribus", "train", "--resume", "run", "--quiet"]
    for arguments in (resume, [*COMMAND, "--out", "whole"]):
        subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True, env=ENVIRONMENT)
    assert (tmp_path / "run/weights.safetensors").read_bytes() == (tmp_path / "whole/weights.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_one_of_two_processes_is_asked_and_both_stop(sent, tmp_path):
    assert stopped(tmp_path, sent, "--devices", "2").count("pluribus train --resume run") == 1
