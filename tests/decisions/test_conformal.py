"""Conformal thresholds and sets: exact ranks by hand, coverage over many draws."""

import math

import pytest
import torch

from pluribus.decisions.conformal import SET_SCORES, build_sets, count_needed_rows, find_threshold, score_classes, score_truth


@pytest.mark.parametrize(
    ("rows", "coverage", "rank"), [(9, 0.9, 9), (9, 0.5, 5), (99, 0.9, 90), (100, 0.9, 91), (19, 0.95, 19), (10, 0.9, 10)]
)
def test_the_threshold_has_the_rank_of_the_definition(rows, coverage, rank):
    """k = ⌈(n + 1) · coverage⌉, counted from 1; with n = 9 and 0.9 it is 9, although 0.9 · 10 may exceed 9 by rounding."""
    scores = torch.arange(1.0, rows + 1)[torch.randperm(rows)]
    assert find_threshold(scores, coverage) == rank


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_fewer_rows_than_needed_give_an_infinite_threshold(coverage):
    need = count_needed_rows(coverage)
    assert math.isfinite(find_threshold(torch.rand(need), coverage))
    assert math.isinf(find_threshold(torch.rand(need - 1), coverage))


def test_coverage_over_many_draws_is_that_of_the_rank():
    """With n = 20 and coverage 0.8 a new score is at most the threshold with k / (n + 1) = 17 / 21, whatever the distribution.

    20,000 draws have a standard error of 0.0028; 4 are allowed.
    """
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(20_000, 21, generator=generator, dtype=torch.double).square()
    hits = [bool(row[20] <= find_threshold(row[:20], 0.8)) for row in scores]
    assert abs(sum(hits) / len(hits) - 17 / 21) < 4 * 0.0028


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, math.nan])
def test_a_coverage_that_makes_no_sense_is_refused(coverage):
    with pytest.raises(ValueError, match="between 0 and 1"):
        find_threshold(torch.rand(9), coverage)


def test_scores_by_hand():
    probs = torch.tensor([[0.1, 0.5, 0.05, 0.35]], dtype=torch.double)
    expected = {
        "lac": [0.9, 0.5, 0.95, 0.65],
        "aps": [0.85, 0.0, 0.95, 0.5],
        "raps": [0.85 + 0.1, 0.0, 0.95 + 0.2, 0.5],  # the third and the fourth class pay for their place
    }
    for by, row in expected.items():
        torch.testing.assert_close(score_classes(probs, by), torch.tensor([row], dtype=torch.double))
    assert score_truth(probs, torch.tensor([3]), "lac").item() == pytest.approx(0.65)


@pytest.mark.parametrize("by", SET_SCORES)
def test_sets_hold_the_truth_as_often_as_asked(by):
    """Labels are drawn from other probabilities than those that are predicted; 400 splits of 200 + 200 rows.

    The mean over the splits has the expectation k / (n + 1) = 181 / 201; its standard error, from the splits, is below
    0.002 (0.0015 for 200 + 200 rows without ties); 4 are allowed. The most probable class has the score 0 of APS in every row:
    where the threshold is such a tie, sets hold the truth more often.
    """
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(80_000 * 2, 5, generator=generator, dtype=torch.double) * 2
    labels = torch.distributions.Categorical(logits=logits / 3).sample()
    probs = logits.softmax(1)
    covered = []
    for part, truth in zip(probs.split(400), labels.split(400), strict=True):
        threshold = find_threshold(score_truth(part[:200], truth[:200], by), 0.9)
        sets = build_sets(part[200:], threshold, by, allow_empty=True)
        covered.append(sets.gather(1, truth[200:].view(-1, 1)).double().mean())
    mean, error = torch.stack(covered).mean().item(), torch.stack(covered).std().item() / math.sqrt(len(covered))
    assert error < 0.002
    assert mean > 181 / 201 - 4 * error
    assert mean < 181 / 201 + 4 * error


@pytest.mark.parametrize("by", SET_SCORES)
def test_a_classifier_that_is_right_more_often_than_asked_names_one_class(by):
    """Then the most probable class alone covers enough; by 1 − p unsure rows would have no class at all."""
    probs = torch.softmax(torch.randn(500, 4, generator=torch.Generator().manual_seed(0)) * 9, 1)
    labels = torch.where(torch.arange(500) < 20, probs.argmin(1), probs.argmax(1))
    sets = build_sets(probs, find_threshold(score_truth(probs, labels, by), 0.9), by)
    assert sets.sum(1).double().mean() < 1.1


def test_empty_sets_hold_the_most_probable_class():
    probs = torch.tensor([[0.4, 0.3, 0.3]])
    assert build_sets(probs, 0.1, "lac", allow_empty=True).sum() == 0
    assert build_sets(probs, 0.1, "lac").tolist() == [[True, False, False]]


def test_rows_without_a_finite_answer_have_no_set():
    assert build_sets(torch.full((1, 3), torch.nan), math.inf).sum() == 0


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match="lac, aps or raps"):
        score_classes(torch.ones(1, 2), "best")
