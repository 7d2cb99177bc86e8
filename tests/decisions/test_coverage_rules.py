"""The rules of results/coverage.py, with numbers on both sides of each threshold."""

import json
import math
import runpy
from pathlib import Path

import pytest

RULES = runpy.run_path(str(Path(__file__).parent.parent.parent / "results" / "coverage.py"))


@pytest.mark.parametrize(("deviations", "holds"), [(1.9, True), (2.1, False), (-1.9, True), (-2.1, False)])
def test_a_cell_holds_within_two_standard_deviations(deviations, holds):
    """99 held-out rows at 0.9: expected 90 / 100, with a variance of 0.09 (1 / 50 + 1 / 101) over the 50 test rows."""
    sigma = math.sqrt(0.09 * (1 / 50 + 1 / 101) / 4)  # four splits
    runs = [{"rows": 99, "test": 50}] * 4
    cell = RULES["judge_cell"](runs, 0.9, [0.9 + deviations * sigma] * 4)
    assert cell["expected"] == pytest.approx(0.9)
    assert cell["deviations"] == pytest.approx(deviations)
    assert cell["holds"] == holds


@pytest.mark.parametrize(
    ("holding", "worst", "kept"), [(9, -3.9, True), (8, -3.9, False), (9, -4.1, False), (9, 4.1, True), (10, 0.0, True)]
)
def test_a_promise_is_kept_by_nine_of_ten_cells_and_none_far_on_the_wrong_side(holding, worst, kept):
    cells = [{"holds": place < holding, "deviations": worst if place == 9 else 0.0} for place in range(10)]
    assert RULES["judge_promise"](cells, -1)["kept"] == kept


@pytest.mark.parametrize(("exceeded", "kept"), [(0, True), (17, True), (18, False)])
def test_the_risk_may_be_exceeded_as_often_as_delta_allows(exceeded, kept):
    """Bin(130, 0.1) is at most 16 with a probability of 0.847, and at most 17 with 0.902."""
    assert RULES["judge_risk"](exceeded, 130)["kept"] == kept


def test_the_page_says_what_was_recorded():
    root = Path(__file__).parent.parent.parent
    found = json.loads((root / "results" / "ablations" / "coverage.json").read_text(encoding="utf-8"))
    page = " ".join((root / "docs" / "decisions.md").read_text(encoding="utf-8").split())
    coverage, alarms, risk = (found["verdicts"][name] for name in ("coverage", "false alarms", "risk"))
    assert coverage["holding"] == 1
    assert coverage["kept"]
    assert alarms["kept"]
    assert risk["kept"]
    assert f"all {coverage['cells']} shares of covered targets" in page
    assert f"exceeded in {risk['exceeded']} of {risk['runs']} runs" in page
    holding = round(alarms["holding"] * alarms["cells"])
    assert f"Of {alarms['cells']} rates of false alarms {holding} lie within two standard deviations" in page
    assert f"the farthest {alarms['farthest']:.1f} above" in page
    noisy = found["under_noise"]
    assert f"one network hold {noisy['single']['0.1']:.0%}".replace("%", " %") in page
    assert f"and {noisy['single']['0.4']:.0%} at 0.4".replace("%", " %") in page
    at_most = [shares["0.4"] for shares in noisy.values()]
    assert f"the best keeps {max(at_most):.0%} there, and the worst {min(at_most):.0%}".replace("%", " %") in page
