"""Verdicts follow from numbers by their rules."""

import math

import pytest

from pluribus.papers.verdicts import is_decreasing, judge_claim, skip_claim, wilson_margin


@pytest.mark.parametrize(
    ("met", "direction", "outcome"),
    [
        (True, True, "reproduced"),
        (True, False, "reproduced"),
        (False, True, "direction reproduced"),
        (False, False, "not reproduced"),
    ],
)
def test_a_rule_that_is_met_counts_more_than_a_direction(met, direction, outcome):
    assert judge_claim("a", "b", "c", met, direction).outcome == outcome


def test_what_was_not_run_says_so():
    assert skip_claim("a", "no data").outcome == "not run at this scale"


def test_the_margin_is_half_of_wilsons_interval():
    share, n, z = 0.3, 50, 1.96
    # Its ends solve (p − share)² = z² p (1 − p) / n.
    a, b, c = 1 + z * z / n, -(2 * share + z * z / n), share**2
    ends = [(-b + sign * math.sqrt(b * b - 4 * a * c)) / (2 * a) for sign in (-1, 1)]
    assert wilson_margin(share, n) == pytest.approx((ends[1] - ends[0]) / 2, rel=1e-12)


def test_ordered_means_falling():
    assert is_decreasing([3, 2, 2])
    assert not is_decreasing([1, 2])
