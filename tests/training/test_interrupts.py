"""Ctrl-C and SIGTERM: the step is finished, the run saved, and it goes on as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time

import pytest

FLAGS = [
    "--data",
    "digits",
    "--rows",
    "300",
    "--model",
    "small-cnn",
    "--method",
    "mimo",
    "--batch-size",
    "16",
    "--epochs",
    "40",
]


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_one_of_two_processes_is_asked_and_both_stop(sent, tmp_path):
    command = [sys.executable, "-m", "pluribus", "train", "--quiet", *FLAGS, "--devices", "2", "--out", "run"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    while not list(tmp_path.glob("run/checkpoints/step-*")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.count("pluribus train --resume run") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_saves_and_says_how_to_go_on(sent, tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pluribus", "train", "--quiet", "--batch-size", "16", *FLAGS]
    process = subprocess.Popen([*command, "--out", "run"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    while not list(tmp_path.glob("run/checkpoints/step-*")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "pluribus train --resume run" in said
    assert "Traceback" not in said
    resume = [sys.executable, "-m", "pluribus", "train", "--resume", "run", "--quiet"]
    for arguments in (resume, [*command, "--out", "whole"]):
        subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True, env=environment)
    assert (tmp_path / "run/weights.safetensors").read_bytes() == (tmp_path / "whole/weights.safetensors").read_bytes()
