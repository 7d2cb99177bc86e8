"""Memory while judging grows with neither draws nor test rows."""

import subprocess
import sys

import numpy as np
import pytest

from pluribus.runs.config import build_config
from pluribus.runs.training import train_run

JUDGE = """
import resource, sys
from pathlib import Path
from pluribus.runs.evaluation import evaluate_run
for folder, samples in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    told = evaluate_run(Path(folder), samples=samples)
    assert told["members"] == samples, told["members"]
    print(told["rows"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def judged(*words):
    """Judge a run with so many draws, or one after the other in one process. Of each, how many rows were judged, and the most
    memory that the whole process had held until then, in bytes."""
    done = subprocess.run([sys.executable, "-c", JUDGE, *map(str, words)], capture_output=True, text=True, check=True)
    return map(int, done.stdout.split())


def trained(folder, images, model="mlp:hidden=[500]"):
    """A variance network with so many test images of MNIST's size; what is in them does not matter here."""
    x = np.random.default_rng(0).integers(0, 256, (100 + images, 28, 28), dtype=np.uint8)
    y = np.arange(100 + images) % 10
    path = folder / "images.npz"
    np.savez(path, x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])
    options = {"data": str(path), "model": model, "method": "variance", "epochs": 1}
    train_run(build_config(options), folder / "run", progress=False)
    return folder / "run"


@pytest.mark.slow
def test_ten_thousand_images_and_two_hundred_draws_take_less_than_a_gigabyte_and_a_half(tmp_path):
    rows, peak = judged(trained(tmp_path, 10_000, "lenet5"), 200)
    assert rows == 10_000
    assert peak < 1.5e9


@pytest.mark.slow
def test_four_times_the_draws_and_rows_take_no_more_memory(tmp_path):
    """Within the noise of the allocator: an answer to 400 rows by 80 draws alone would be 64 MB, if it were made at once."""
    (tmp_path / "few").mkdir(), (tmp_path / "many").mkdir()
    _, few, _, many = judged(trained(tmp_path / "few", 100), 20, trained(tmp_path / "many", 400), 80)
    assert many - few < 40e6
