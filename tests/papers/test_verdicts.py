"""Verdicts follow from numbers by their rules."""

import math

import pytest

from pluribus.papers.verdicts import find_lossless_share, is_decreasing, judge_claim, skip_claim, wilson_margin


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


@pytest.mark.parametrize(
    ("values", "slack", "is_so"),
    [([3, 2, 2], 0.0, True), ([3, 2, 2.001], 0.0, False), ([3, 2, 2.5], 0.5, True), ([3, 2, 2.501], 0.5, False)],
)
def test_values_decrease_if_none_is_above_the_one_before(values, slack, is_so):
    assert is_decreasing(values, slack) == is_so


@pytest.mark.parametrize(
    ("curve", "share"),
    [
        ([(0.0, 0.99), (0.5, 0.98805), (0.9, 0.99)], 0.9),  # the half width at 99 % of 10,000 rows is 0.00196
        ([(0.0, 0.99), (0.5, 0.98803), (0.9, 0.99)], 0.0),  # what follows a loss does not count
        ([(0.0, 0.99), (0.5, 1.0), (0.9, 0.98805)], 0.9),  # the first accuracy counts, not the best
        ([(0.0, 0.99)], 0.0),
    ],
)
def test_a_share_is_lossless_up_to_the_first_loss_beyond_the_interval(curve, share):
    assert find_lossless_share(curve, 10_000) == share
