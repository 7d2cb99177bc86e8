"""Memory of whole processes that predict, as the system counts it: benchmarks/predict_memory.py measures it."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")

FILE = Path(__file__).parents[2] / "benchmarks" / "predict_memory.py"


@pytest.fixture(scope="module")
def measure():
    spec = importlib.util.spec_from_file_location("predict_memory", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.measure


def check_flat(peaks: list[float]) -> None:
    assert max(peaks) <= 1.1 * min(peaks), peaks


def test_ten_times_the_draws_take_the_same_memory_without_members_and_their_outputs_with_them():
    """100 draws for 8,000 rows are 31 MiB. 24 more are allowed: a chunk of rows, and a block of the outputs.

    One process predicts one after the other: a peak that is not larger than the last one's shows that no more was taken.
    """
    calls = [("mc-dropout", draws, 8000, members) for draws, members in ((10, False), (100, False), (100, True))]
    code = f"import json, predict_memory as p; print(json.dumps([p.predict_here(*call) for call in {calls}]))"
    place = os.environ | {"PYTHONPATH": os.pathsep.join([str(FILE.parent), str(FILE.parents[1])])}
    done = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, text=True, check=True)
    few, many, kept = json.loads(done.stdout)
    check_flat([few["peak"], many["peak"]])
    assert kept["outputs"] < kept["growth"] < kept["outputs"] + 24


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mc-dropout", "variance, drawn weights", "deep ensemble of 2 × mc-dropout"])
def test_a_hundred_times_the_draws_take_the_same_memory_without_members(measure, method):
    check_flat([measure(method, draws, 20_000, False)["peak"] for draws in (10, 100, 1000)])


@pytest.mark.slow
def test_a_thousand_draws_take_the_memory_of_their_outputs(measure):
    """763 MiB; a twentieth more is allowed. Lists of chunks took 4,836."""
    kept = measure("mc-dropout", 1000, 20_000, True)
    assert kept["outputs"] < kept["growth"] < 1.05 * kept["outputs"]
