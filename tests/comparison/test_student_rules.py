"""The rule by which results/record.py says what a student's teacher brought: numbers on both sides of each threshold."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "results" / "record.py"))


def build(**scores):
    methods = [{"name": name, "scores": {"calibrated_nll": {"seeds": seeds}}} for name, seeds in scores.items()]
    return {"methods": methods, "reference_curve": {"nll": [{"value": value} for value in (1.0, 0.9, 0.8, 0.7)]}}


TAUGHT = build(**{"single": [0.9, 1.1], "single ← deep-ensemble": [0.7, 0.9], "deep-ensemble": [0.7, 0.7]})


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.667, "explain it"), (0.666, "explain a part of it"), (0.334, "explain a part of it"), (0.333, "do not explain it")],
)
def test_length_and_mixed_inputs_explain_a_gain_if_they_have_two_thirds_of_it_alone(share, verdict):
    alone = 1 - 0.2 * share
    text = SCRIPT["describe_control"](TAUGHT, build(single=[alone, alone]))
    assert f"{share:.0%} of its gain" in text
    assert f"length and mixed inputs alone {verdict}." in text


def test_the_control_is_counted_in_networks_and_compared_by_seed():
    text = SCRIPT["describe_control"](TAUGHT, build(single=[0.84, 0.96]))
    assert "worth 2.0 of the shorter ones" in text  # 0.9 is the second of the curve
    # the differences are 0.14 and 0.06: mean 0.1, and t of one degree of freedom, 12.706, times 0.04 to either side
    assert "The student is 0.100 better than it (-0.408 to 0.608 over 2 seeds)" in text
