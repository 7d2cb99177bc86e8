"""How members differ, against pairs counted one by one and numbers found by hand."""

import itertools
import math

import numpy as np
import pytest
import torch

from pluribus import Predictive
from pluribus.analysis import bias_variance, disagreement, error_correlation, normalised_disagreement, pairwise_kl
from pluribus.metrics import accuracy, rmse


def certain(labels, classes=3):
    """Members that are sure of these labels, `[M, B]`."""
    return Predictive(50 * torch.nn.functional.one_hot(torch.tensor(labels), classes).double())


@pytest.fixture
def case():
    return Predictive(2 * torch.randn(4, 100, 5, dtype=torch.double)), torch.randint(0, 5, (100,))


def test_three_members_by_hand():
    p = certain([[0, 1, 2, 0], [0, 1, 1, 1], [0, 2, 2, 0]])
    y = torch.tensor([0, 1, 2, 0])
    # Pairs that differ by row: 0, 2, 2, 2 of 3; members err 0, 2 and 1 times in 4.
    assert disagreement(p) == pytest.approx((0 + 2 + 2 + 2) / 12)
    assert normalised_disagreement(p, y) == pytest.approx(0.5 / (3 / 12))
    # The errors of member 1 are (0,0,1,1), of member 2 (0,1,0,0): covariance −1/8, deviations 1/2 and √3/4.
    # Member 0 never errs, so its two pairs count as 0.
    assert error_correlation(p, y) == pytest.approx((0 + 0 - (1 / 8) / (1 / 2 * math.sqrt(3) / 4)) / 3)


def test_the_divergence_of_two_coins_by_hand():
    """KL((½,½) ‖ (¾,¼)) = ½ log ⅔ + ½ log 2, and the other way round ¾ log 3/2 + ¼ log ½."""
    p = Predictive(torch.tensor([[[0.5, 0.5]], [[0.75, 0.25]]], dtype=torch.double).log())
    there = 0.5 * math.log(2 / 3) + 0.5 * math.log(2)
    back = 0.75 * math.log(3 / 2) + 0.25 * math.log(1 / 2)
    assert pairwise_kl(p) == pytest.approx((there + back) / 2, rel=1e-12)


def test_all_measures_agree_with_pairs_one_by_one(case):
    p, y = case
    members = range(len(p.members))
    labels, probs = p.members.argmax(2), p.members
    wrong = (labels != y).double()
    differ = [(labels[i] != labels[j]).double().mean().item() for i, j in itertools.combinations(members, 2)]
    kl = [(probs[i] * (probs[i] / probs[j]).log()).sum(1).mean().item() for i, j in itertools.permutations(members, 2)]
    correlation = np.corrcoef(wrong.numpy())[np.triu_indices(4, 1)].mean()
    assert disagreement(p) == pytest.approx(np.mean(differ), abs=1e-6)  # a Predictive has it in single precision
    assert pairwise_kl(p) == pytest.approx(np.mean(kl), rel=1e-12)
    assert error_correlation(p, y) == pytest.approx(correlation, abs=1e-12)
    mean_error = np.mean([1 - accuracy(Predictive(p.outputs[i : i + 1]), y) for i in members])
    assert normalised_disagreement(p, y) == pytest.approx(np.mean(differ) / mean_error, abs=1e-6)


def test_equally_good_members_are_normalised_as_the_papers_do():
    """The share of rows on which two members differ, divided by the error of one of them."""
    p, y = certain([[0, 1, 2, 0, 1], [0, 1, 1, 0, 2]]), torch.tensor([0, 1, 2, 1, 2])  # both err twice in five
    assert normalised_disagreement(p, y) == pytest.approx((2 / 5) / (2 / 5))


def test_the_same_answer_from_all_members_is_no_diversity():
    outputs = torch.randn(1, 50, 4, dtype=torch.double).expand(3, -1, -1)
    p, y = Predictive(outputs), torch.randint(0, 4, (50,))
    assert disagreement(p) == normalised_disagreement(p, y) == 0
    assert pairwise_kl(p) == pytest.approx(0, abs=1e-12)
    assert error_correlation(p, y) == pytest.approx(1)


def test_one_member_has_no_pairs():
    p, y = Predictive(torch.randn(1, 20, 4)), torch.randint(0, 4, (20,))
    assert disagreement(p) == normalised_disagreement(p, y) == pairwise_kl(p) == 0
    assert error_correlation(p, y) == 1


def test_errors_that_never_change_count_as_uncorrelated():
    p, y = certain([[0, 1, 2], [0, 1, 2]]), torch.tensor([0, 1, 2])
    assert error_correlation(p, y) == 0
    assert error_correlation(p, (y + 1) % 3) == 0
    assert normalised_disagreement(p, y) == 0
    assert error_correlation(certain([[0] * 7, [0] * 7]), torch.tensor([1] * 7)) == 0


def test_certain_answers_have_the_divergence_of_their_probabilities():
    """Never nan: a class that nobody thinks possible costs nothing, one that only another does costs everything."""
    outputs = torch.tensor([[[0.0, 0.0, -math.inf]], [[0.0, 0.0, -math.inf]]])
    assert pairwise_kl(Predictive(outputs)) == 0
    outputs = torch.tensor([[[0.0, 0.0, -math.inf]], [[0.0, -math.inf, -math.inf]]])
    assert pairwise_kl(Predictive(outputs)) == math.inf


def test_single_logits_and_answers_with_more_axes_are_understood():
    logits, y = torch.randn(3, 40, 1, dtype=torch.double), torch.randint(0, 2, (40,))
    two = torch.cat([torch.zeros_like(logits), logits], dim=2)
    for measure in (disagreement, pairwise_kl):
        assert measure(Predictive(logits)) == pytest.approx(measure(Predictive(two)))
    assert error_correlation(Predictive(logits), y) == pytest.approx(error_correlation(Predictive(two), y))
    maps, labels = torch.randn(3, 4, 5, 2, 2, dtype=torch.double), torch.randint(0, 5, (4, 2, 2))
    rows, flat = maps.permute(0, 1, 3, 4, 2).reshape(3, 16, 5), labels.reshape(16)
    for measure in (normalised_disagreement, error_correlation):
        assert measure(Predictive(maps), labels) == pytest.approx(measure(Predictive(rows), flat))
    assert pairwise_kl(Predictive(maps)) == pytest.approx(pairwise_kl(Predictive(rows)))


def test_a_regressions_error_is_bias_plus_variance():
    """Exact in double precision, whatever the members say."""
    outputs, y = torch.randn(5, 300, 2, dtype=torch.double) + 3, torch.randn(300, 2, dtype=torch.double)
    p = Predictive(outputs, "regression")
    split = bias_variance(p, y)
    assert split.error == pytest.approx(split.bias + split.variance, rel=1e-13)
    assert split.error == pytest.approx(np.mean([(o - y).square().mean().item() for o in outputs]), rel=1e-13)
    assert split.ensemble == pytest.approx(rmse(p, y) ** 2, rel=1e-12)
    assert split.variance == pytest.approx(p.variance.mean().item(), rel=1e-12)


def test_a_regression_by_hand():
    p = Predictive(torch.tensor([[[1.0], [0.0]], [[2.0], [4.0]]], dtype=torch.double), "regression")  # means 1.5 and 2
    split = bias_variance(p, torch.tensor([1.0, 2.0]))
    assert split == (pytest.approx((0 + 1 + 4 + 4) / 4), pytest.approx(0.25 / 2), pytest.approx((0.25 + 4) / 2))


def test_targets_of_another_size_are_refused(case):
    p, _ = case
    with pytest.raises(ValueError, match="target for each of 100"):
        error_correlation(p, torch.zeros(3))
    with pytest.raises(ValueError, match="shape of the predictions"):
        bias_variance(Predictive(p.outputs, "regression"), torch.zeros(3))
