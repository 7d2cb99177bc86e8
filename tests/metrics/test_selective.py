import pytest
import torch

from pluribus import Predictive
from pluribus.metrics.selective import accuracy_at_coverage, aurc, risk_coverage


def of(confidence, right):
    """Two classes; class 0 is always preferred, and is right or not."""
    probs = torch.tensor([[c, 1 - c] for c in confidence], dtype=torch.double)
    return Predictive(probs.log().unsqueeze(0)), torch.tensor([0 if r else 1 for r in right])


def test_the_risk_is_the_error_among_the_surest():
    p, y = of([0.6, 0.9, 0.8, 0.7], [0, 1, 0, 1])  # in order of confidence: right, wrong, right, wrong
    coverage, risk = risk_coverage(p, y)
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert aurc(p, y) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert accuracy_at_coverage(p, y, 0.5) == pytest.approx(0.5)
    assert accuracy_at_coverage(p, y, 0.01) == 1, "at least one row is answered"


def test_rows_of_equal_confidence_have_no_order():
    first, second = of([0.8, 0.8, 0.8], [1, 0, 0]), of([0.8, 0.8, 0.8], [0, 0, 1])
    assert aurc(*first) == aurc(*second) == pytest.approx(2 / 3)


def test_a_better_order_has_a_smaller_area():
    assert aurc(*of([0.9, 0.8, 0.7], [1, 1, 0])) < aurc(*of([0.9, 0.8, 0.7], [0, 1, 1]))


@pytest.mark.parametrize("coverage", [0.0, 1.1])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage must be above 0"):
        accuracy_at_coverage(*of([0.9], [1]), coverage)
