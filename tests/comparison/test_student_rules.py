"""The rule by which results/record.py says what a student's teacher brought: numbers on both sides of each threshold."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "results" / "record.py"))


def build(**scores):
    return {"methods": [{"name": name, "scores": {"calibrated_nll": {"mean": score}}} for name, score in scores.items()]}


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.667, "explain it"), (0.666, "explain a part of it"), (0.334, "explain a part of it"), (0.333, "do not explain it")],
)
def test_length_and_mixed_inputs_explain_a_gain_if_they_have_two_thirds_of_it_alone(share, verdict):
    taught = build(**{"single": 1.0, "single ← deep-ensemble": 0.8, "deep-ensemble": 0.7})
    text = SCRIPT["describe_control"](taught, build(single=1 - 0.2 * share))
    assert f"{share:.0%} of its gain" in text
    assert text.endswith(f"length and mixed inputs alone {verdict}.")
