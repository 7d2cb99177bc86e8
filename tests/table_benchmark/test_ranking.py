"""The rule for ranks and leads, on scores whose outcome is known."""

import math

import numpy as np
import pytest
from scipy.stats import rankdata, t

from pluribus.table_benchmark.ranking import (
    compare_over_tables,
    compare_pair,
    count_independent_splits,
    find_leads,
    is_beyond_noise,
    rank_contenders,
    rank_scores,
)


def test_ranks_are_those_of_scipy():
    scores = np.random.default_rng(0).integers(0, 4, 12).astype(float)
    assert rank_scores(scores.tolist()) == rankdata(scores).tolist()


def test_a_table_with_many_splits_counts_as_much_as_one_with_few():
    scores = {"long": {"a": [1.0] * 10, "b": [2.0] * 10}, "short": {"a": [2.0, 2.0], "b": [1.0, 1.0]}}
    found = rank_contenders(scores, {"long": 0.1, "short": 0.1})
    assert found["a"]["rank"] == found["b"]["rank"] == 1.5
    assert found["a"]["tables"] == {"long": 1.0, "short": 2.0}
    assert found["a"]["low"] == found["a"]["high"] == 1.5  # equal ranks on all splits of a table


def test_draws_vary_as_much_as_the_correction_says():
    """Ranks of two contenders that win every other split: s² of a rank is 1/4, and a draw takes five of ten splits."""
    wins = [1.0, 3.0] * 5
    found = rank_contenders({"one": {"a": wins, "b": [2.0] * 10}}, {"one": 1 / 9})
    assert found["a"]["rank"] == 1.5
    assert count_independent_splits(10, 1 / 9) == 5
    # The share of five fair coins that show heads: 0 or 5 of them in 1/32 of the draws each, so 95 % lie from 0 to 1.
    assert (found["a"]["low"], found["a"]["high"]) == (1.0, 2.0)
    many = rank_contenders({"one": {"a": wins * 20, "b": [2.0] * 200}}, {"one": 0.0})
    assert many["a"]["high"] - many["a"]["rank"] == pytest.approx(1.96 * 0.5 / math.sqrt(200), rel=0.1)


def test_the_lead_of_a_pair_is_positive_for_the_smaller_score_and_its_error_is_corrected():
    own, other = np.array([1.0, 1.2, 0.8, 1.1]), np.array([2.0, 2.5, 1.7, 2.2])
    lead, error, freedom = compare_pair(own, other, 0.25, relative=False)
    d = other - own
    assert lead == pytest.approx(d.mean())
    assert error == pytest.approx(math.sqrt((1 / 4 + 0.25) * d.var(ddof=1)))
    assert freedom == 3
    assert compare_pair(other, own, 0.25, relative=False)[0] == pytest.approx(-d.mean())
    relative = compare_pair(own, other, 0.25, relative=True)
    assert relative[0] == pytest.approx(d.mean() / other.mean())
    assert relative[1] == pytest.approx(error / other.mean())


def test_the_threshold_is_that_of_student():
    edge = t.ppf(0.975, 9)
    assert is_beyond_noise(edge * 1.001, 1.0, 9, 0.05)
    assert not is_beyond_noise(edge * 0.999, 1.0, 9, 0.05)
    assert not is_beyond_noise(-10.0, 1.0, 9, 0.05)
    assert not is_beyond_noise(10.0, math.inf, 0, 0.05), "one split says nothing about noise"
    assert not is_beyond_noise(math.nan, 1.0, 9, 0.05)


def test_leads_over_tables_are_means_and_their_errors_add_up():
    scores = {"x": {"a": [1.0, 1.2], "b": [2.0, 2.1]}, "y": {"a": [5.0, 5.5], "b": [5.2, 5.1]}}
    shares = {"x": 0.1, "y": 0.2}
    pairs = [compare_pair(scores[n]["a"], scores[n]["b"], shares[n], True) for n in "xy"]
    lead, error, freedom = compare_over_tables("a", "b", scores, shares, True)
    assert lead == pytest.approx((pairs[0][0] + pairs[1][0]) / 2)
    assert error == pytest.approx(math.hypot(pairs[0][1], pairs[1][1]) / 2)
    assert freedom == 2


def test_a_leader_leads_every_other_one():
    generator = np.random.default_rng(1)
    noise = generator.standard_normal((3, 10)) * 0.01
    scores = {"one": {"a": 1 + noise[0], "b": 2 + noise[1], "c": 2 + noise[2]}}
    found = find_leads(scores, {"one": 0.1}, "rmse")
    assert found["leader"] == "a"
    assert found["pairs"]["a"] == found["tables"]["one"]["a"] == ["b", "c"]
    assert found["pairs"]["b"] == []
    near = {"one": {"a": 1 + noise[0], "b": 1 + noise[1], "c": 2 + noise[2]}}
    found = find_leads(near, {"one": 0.1}, "rmse")
    assert found["leader"] is None
    assert found["pairs"]["a"] == found["pairs"]["b"] == ["c"]


def test_among_equals_somebody_leads_in_no_more_than_one_of_twenty_benchmarks():
    generator, leaders = np.random.default_rng(2), 0
    for _ in range(60):
        scores = {table: {name: 1 + 0.1 * generator.standard_normal(10) for name in "abcd"} for table in ("x", "y")}
        leaders += find_leads(scores, {"x": 0.0, "y": 0.0}, "rmse")["leader"] is not None
    assert leaders <= 3
