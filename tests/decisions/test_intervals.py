"""Prediction intervals: by hand, and their coverage over many draws."""

import itertools
import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Predictive
from pluribus.decisions.intervals import RegressionRules, fit_regression_rules


def draw(rows: int, generator: torch.Generator) -> tuple[Predictive, torch.Tensor]:
    """Four members whose spread says, up to a factor, how noisy a row is; errors are skewed."""
    scale = torch.rand(rows, 1, generator=generator, dtype=torch.double) + 0.1
    members = scale * torch.randn(4, rows, 1, generator=generator, dtype=torch.double)
    noise = scale * torch.empty(rows, 1, dtype=torch.double).exponential_(generator=generator) * 3
    return Predictive(1000 + members, "regression"), 1000 + noise


@pytest.mark.parametrize(("scale", "fitted"), [("absolute", 200), ("normalised", 100)])
@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_intervals_hold_the_target_as_often_as_asked(scale, fitted, coverage):
    """Over 600 draws of 200 + 100 rows the mean coverage is k / (n + 1) with the n rows that fit the threshold; 4 σ.

    A share of 0.8 among 100 rows, and a threshold from 100 rows, have variances of 0.0016 each: σ is 0.0023."""
    generator, found = torch.Generator().manual_seed(0), []
    for number in range(600):
        p, y = draw(300, generator)
        rules = fit_regression_rules(Predictive(p.outputs[:, :200], "regression"), y[:200], coverage, scale, seed=number)
        found.append(rules.decide(Predictive(p.outputs[:, 200:], "regression")).hold(y[200:]).double().mean())
    mean, error = torch.stack(found).mean().item(), torch.stack(found).std().item() / math.sqrt(len(found))
    expected = math.ceil((fitted + 1) * coverage - 1e-9) / (fitted + 1)
    assert error < 0.003
    assert abs(mean - expected) < 4 * error


def test_normalised_intervals_are_narrower_where_members_agree():
    rules = RegressionRules(noise=1.0, coverage=0.5, scale="normalised", scores=(1.0, 2.0, 3.0))
    outputs = torch.tensor([[[0.0], [-math.sqrt(3)]], [[0.0], [math.sqrt(3)]]], dtype=torch.double)  # variances 0 and 3
    found = rules.decide(Predictive(outputs, "regression"))
    torch.testing.assert_close(found.width.flatten(), torch.tensor([2 * 2.0, 2 * 2 * 2.0], dtype=torch.double))
    torch.testing.assert_close(found.spread.flatten(), torch.tensor([0.0, math.sqrt(3)], dtype=torch.double))
    assert found.noise.flatten().tolist() == [1.0, 1.0]


def test_any_level_can_be_asked_for_and_wider_ones_hold_narrower_ones():
    p, y = draw(500, torch.Generator().manual_seed(0))
    rules = fit_regression_rules(p, y)
    levels = [rules.decide(p, level) for level in (0.5, 0.8, 0.9, 0.99)]
    for inner, outer in itertools.pairwise(levels):
        assert bool((outer.low <= inner.low).all())
        assert bool((outer.high >= inner.high).all())
    assert rules.decide(p).coverage == 0.9


def test_one_network_has_intervals_too():
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(nn.Linear(2, 1), pluribus.Single(), task="regression")
    x = torch.randn(2000, 2)
    y = x.sum(1) * 1e5 + 1e5 * torch.randn(2000)
    calibrated = pluribus.calibrate(ensemble, x[:1000], y[:1000])
    found = calibrated.predict(x[1000:])
    assert calibrated.rules.scale == "absolute"
    assert 0.87 < found.hold(y[1000:]).double().mean() < 0.93
    assert found.spread.max() == 0
    assert found.noise.min() == found.noise.max() > 1e5


def draw_with_noise(rows: int, generator: torch.Generator, members: int) -> tuple[Predictive, torch.Tensor]:
    """Members that predict the noise up to a factor; errors are skewed, and larger where the members differ, too."""
    scale = torch.rand(rows, 1, generator=generator, dtype=torch.double) + 0.05
    means = 1000 + 0.3 * torch.randn(members, rows, 1, generator=generator, dtype=torch.double)
    outputs = torch.cat([means, (4 * scale.square()).expand(members, -1, -1)], 2)
    y = 1000 + scale * torch.empty(rows, 1, dtype=torch.double).exponential_(generator=generator)
    return Predictive(outputs, "regression", has_noise=True), y


@pytest.mark.parametrize("members", [1, 3])
def test_intervals_of_predicted_noise_hold_their_coverage_with_all_held_out_rows(members):
    """Over 400 draws of 99 + 100 rows the mean coverage is 90 / 100 with the 99 rows; one network has such intervals, too."""
    generator, found = torch.Generator().manual_seed(0), []
    for _ in range(400):
        p, y = draw_with_noise(199, generator, members)
        rules = fit_regression_rules(Predictive(p.outputs[:, :99], "regression", has_noise=True), y[:99], 0.9)
        assert (rules.scale, len(rules.scores), rules.noise) == ("normalised", 99, 0.0)
        decided = rules.decide(Predictive(p.outputs[:, 99:], "regression", has_noise=True))
        found.append(decided.hold(y[99:]).double().mean())
    error = torch.stack(found).std().item() / math.sqrt(len(found))
    assert error < 0.003
    assert abs(torch.stack(found).mean().item() - 0.9) < 4 * error


def test_intervals_of_predicted_noise_are_as_wide_as_noise_and_spread_say():
    outputs = torch.tensor([[[0.0, 1.0], [-3.0, 7.0]], [[0.0, 3.0], [3.0, 7.0]]], dtype=torch.double)
    p = Predictive(outputs, "regression", has_noise=True)  # noise 2 and 7, spread 0 and 9
    rules = RegressionRules(0.0, 0.5, "normalised", (1.0, 2.0, 3.0), is_noise_predicted=True)
    for found in (rules.decide(p), rules.decide(p.summarize())):
        torch.testing.assert_close(found.noise.flatten(), torch.tensor([2.0, 7.0], dtype=torch.double).sqrt())
        torch.testing.assert_close(found.spread.flatten(), torch.tensor([0.0, 3.0], dtype=torch.double))
        torch.testing.assert_close(found.width.flatten(), 4 * torch.tensor([2.0, 16.0], dtype=torch.double).sqrt())
    assert "predicted row by row" in rules.explain()[0]


def test_an_interval_of_several_outputs_holds_all_of_them():
    generator = torch.Generator().manual_seed(0)
    p = Predictive(torch.zeros(1, 2000, 3), "regression")
    y = torch.randn(2000, 3, generator=generator)
    rules = fit_regression_rules(Predictive(p.outputs[:, :1000], "regression"), y[:1000])
    held = rules.decide(Predictive(p.outputs[:, 1000:], "regression")).hold(y[1000:])
    assert 0.87 < held.all(1).double().mean() < 0.93


def test_too_few_rows_are_told():
    p = Predictive(torch.zeros(1, 5, 1), "regression")
    rules = fit_regression_rules(p, torch.arange(5.0))
    assert bool(rules.decide(p).width.isinf().all())
    assert "need 9 held-out rows" in rules.explain()[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"risk": 0.1}, "is for classes"), ({"scale": "wide"}, "normalised or absolute"), ({"coverage": 1.5}, "between 0 and 1")],
)
def test_wrong_arguments_are_refused(options, message):
    ensemble = pluribus.ensemble(nn.Linear(2, 1), pluribus.Single(), task="regression")
    with pytest.raises(ValueError, match=message):
        pluribus.calibrate(ensemble, torch.randn(50, 2), torch.randn(50), **options)


def test_a_classification_needs_a_wish():
    ensemble = pluribus.ensemble(nn.Linear(2, 3), pluribus.Single())
    with pytest.raises(ValueError, match="coverage=, risk= or false_alarms="):
        pluribus.calibrate(ensemble, torch.randn(50, 2), torch.zeros(50))
