"""When not to answer: the binomial test by hand, and the risk on new rows over many draws."""

import math

import pytest
import torch

from pluribus.decisions.abstention import compute_binomial_cdf, count_needed_answers, find_safe_confidence


@pytest.mark.parametrize(("most", "count", "chance"), [(0, 10, 0.1), (3, 10, 0.3), (10, 10, 0.3), (40, 200, 0.25)])
def test_binomial_probabilities(most, count, chance):
    expected = sum(math.comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(most + 1))
    assert compute_binomial_cdf(most, count, chance) == pytest.approx(expected, rel=1e-10)


def test_the_rows_that_are_needed_are_just_enough():
    need = count_needed_answers(0.05, delta=0.1)
    always = torch.ones(need, dtype=torch.bool)
    assert find_safe_confidence(torch.rand(need), always, 0.05, 0.1) == 0
    assert find_safe_confidence(torch.rand(need - 1), always[1:], 0.05, 0.1) == math.inf


def test_one_more_error_than_the_test_allows_withholds_the_answers():
    """Of 1,000 rows with equal confidences only the threshold 0 answers any: it is safe up to a number of errors."""
    confidence = torch.full((1000,), 0.9)
    most = max(k for k in range(100) if compute_binomial_cdf(k, 1000, 0.05) <= 0.1)
    for wrong, answered in ((most, True), (most + 1, False)):
        right = torch.arange(1000) >= wrong
        assert (find_safe_confidence(confidence, right, 0.05) == 0) == answered


def simulate(rows: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows whose answer is right with a probability that is below their confidence."""
    confidence = torch.rand(rows, generator=generator, dtype=torch.double)
    return confidence, torch.rand(rows, generator=generator, dtype=torch.double) < 1 - 0.4 * (1 - confidence)


def test_the_risk_of_new_rows_is_kept_in_nine_of_ten_draws():
    """Above a threshold t the risk is 0.2 (1 − t). Of 400 draws with δ = 0.1 at most 40 ± 6 may exceed it: 4 σ are allowed.

    And the rule is of use: it answers more than a third of the rows where three fifths could be answered.
    """
    generator = torch.Generator().manual_seed(0)
    risk, found = 0.12, []
    for _ in range(400):
        threshold = find_safe_confidence(*simulate(1000, generator), risk, delta=0.1)
        found.append(min(threshold, 1.0))
    risks = [0.2 * (1 - threshold) for threshold in found]
    assert sum(each > risk for each in risks) <= 40 + 4 * 6
    assert 0.4 < sum(found) / len(found) < 0.67


@pytest.mark.parametrize(("risk", "delta"), [(0, 0.1), (1, 0.1), (0.1, 0), (math.nan, 0.1)])
def test_shares_that_make_no_sense_are_refused(risk, delta):
    with pytest.raises(ValueError, match="between 0 and 1"):
        find_safe_confidence(torch.rand(5), torch.ones(5), risk, delta)
