"""The rules by which results/student_limits.py judges what helps a student: numbers on both sides of each threshold."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "results" / "student_limits.py"))


@pytest.mark.parametrize(
    ("closed", "verdict"), [(0.334, "holds it back"), (0.333, "not decided"), (0.101, "not decided"), (0.099, "does not")]
)
def test_a_change_holds_a_student_back_if_it_closes_a_third_of_the_gap(closed, verdict):
    means = {"student": 1.0, "teacher": 0.0, "longer": 1 - closed, "wider": 1.0, "inputs": 1.0}
    found = SCRIPT["draw_conclusions"]("cifar10-few", means)
    assert found["closed"]["longer"] == pytest.approx(closed)
    assert found["verdicts"]["longer"] == verdict


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.667, "explain it"), (0.666, "explain a part"), (0.334, "explain a part"), (0.333, "do not")]
)
def test_length_and_mixed_inputs_explain_a_gain_if_they_have_two_thirds_of_it_alone(share, verdict):
    found = SCRIPT["draw_conclusions"]("cifar10-wide", {"single": 1.0, "longer": 0.8, "alone": 1 - 0.2 * share})
    assert found["share_of_gain_alone"] == pytest.approx(share)
    assert found["length and mixed inputs"] == verdict
