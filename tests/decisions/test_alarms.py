"""Alarms: scores by hand, the choice by foreign rows, and the rate of false alarms over many draws."""

import math

import pytest
import torch

import pluribus
from pluribus import Predictive
from pluribus.decisions.alarms import ALARM_SCORES, list_alarm_scores, score_strangeness
from pluribus.decisions.classification import fit_classification_rules


def test_scores_by_hand():
    p = Predictive(torch.tensor([[[math.log(3.0), 0.0]], [[0.0, 0.0]]], dtype=torch.double))
    mean = (0.75 + 0.5) / 2
    entropy = -mean * math.log(mean) - (1 - mean) * math.log(1 - mean)
    own = (-0.75 * math.log(0.75) - 0.25 * math.log(0.25) + math.log(2)) / 2
    expected = {
        "confidence": -mean,
        "entropy": entropy,
        "mutual-information": entropy - own,
        "energy": -(math.log(4) + math.log(2)) / 2,
        "distance": 2.5,
    }
    assert set(expected) == set(ALARM_SCORES)
    for score, value in expected.items():
        assert score_strangeness(p, score, torch.tensor([2.5])).item() == pytest.approx(value, abs=1e-12), score


def test_scores_that_a_prediction_lacks_are_not_offered():
    p = Predictive(torch.randn(1, 4, 3))
    assert "mutual-information" not in list_alarm_scores(p)
    assert "energy" not in list_alarm_scores(p.summarize())
    with pytest.raises(ValueError, match="members=True"):
        score_strangeness(p.summarize(), "energy")
    assert "distance" not in list_alarm_scores(p)
    with pytest.raises(ValueError, match="pass the distance of each row"):
        score_strangeness(p, "distance")


def test_the_rate_of_false_alarms_is_that_of_the_rank_although_the_score_was_chosen():
    """100 of 200 rows fit the threshold of rank ⌈101 · 0.9⌉ = 91: false alarms have the probability 10 / 101.

    500 draws of 100 new rows; the mean has a standard error below 0.003; 4 are allowed.
    """
    generator, rates = torch.Generator().manual_seed(0), []
    for number in range(500):
        outputs = torch.randn(2, 300, 4, generator=generator, dtype=torch.double)
        foreign = Predictive(torch.randn(2, 50, 4, generator=generator, dtype=torch.double) * 0.7)
        held_out = Predictive(outputs[:, :200])
        rules = fit_classification_rules(held_out, torch.zeros(200), false_alarms=0.1, foreign=foreign, seed=number)
        rates.append(rules.decide(Predictive(outputs[:, 200:])).is_foreign.double().mean())
    mean, error = torch.stack(rates).mean().item(), torch.stack(rates).std().item() / math.sqrt(500)
    assert error < 0.003
    assert abs(mean - 10 / 101) < 4 * error


def test_foreign_rows_choose_the_score_that_finds_them():
    """Members agree on rows of the training kind and differ on foreign ones, where their mean is as sure as elsewhere."""
    generator = torch.Generator().manual_seed(0)
    logit = 3 * torch.rand(400, generator=generator)
    same = torch.stack([logit, torch.zeros(400)], dim=1).expand(2, -1, -1)
    differing = torch.stack([torch.stack([logit + 4, torch.zeros(400)], 1), torch.stack([logit * 0, logit], 1)])
    rules = fit_classification_rules(Predictive(same), torch.zeros(400), false_alarms=0.05, foreign=Predictive(differing))
    assert rules.alarm_score == "mutual-information"
    assert rules.decide(Predictive(differing)).is_foreign.float().mean() > 0.9


def test_an_ensemble_with_all_rules_says_one_of_four_things():
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 3)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[4.0, 0.0], [-4.0, 0.0], [0.0, 4.0]]))
        net.bias.zero_()
    ensemble = pluribus.ensemble(net, pluribus.Single())
    x = torch.randn(3000, 2)
    y = torch.distributions.Categorical(logits=net(x).detach()).sample()
    calibrated = pluribus.calibrate(
        ensemble, x[:2000], y[:2000], coverage=0.9, risk=0.05, false_alarms=0.01, foreign=x[:200] * 0.01
    )
    answer = calibrated.predict(x[2000:])
    texts = answer.describe(["a", "b", "c"])
    assert {"a", "b", "c"} <= set(texts)
    assert any(" or " in text for text in texts)
    wrong = (answer.labels != y[2000:])[answer.is_answered]
    assert wrong.float().mean() < 0.08
    assert answer.is_answered.float().mean() > 0.5
    covered = answer.sets.gather(1, y[2000:].view(-1, 1)).float().mean()
    assert covered > 0.88  # more often than asked, because no set is empty
    assert answer.is_foreign.float().mean() < 0.03
    assert len(str(calibrated).splitlines()) == 3


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1, 5, 3, 4, 4), "one class a row"), ((1, 4, 3), "a target for each"), ((1, 0, 3), "at least one row")],
)
def test_rows_that_cannot_be_used_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        fit_classification_rules(Predictive(torch.zeros(shape)), torch.zeros(shape[1] if shape[1] != 4 else 5), coverage=0.9)


def test_a_row_without_a_finite_answer_is_not_answered():
    rules = fit_classification_rules(Predictive(torch.randn(1, 99, 3)), torch.zeros(99), coverage=0.9, risk=0.9)
    answer = rules.decide(Predictive(torch.full((1, 1, 3), torch.nan)))
    assert answer.describe("abc") == ["I would rather not say"]
