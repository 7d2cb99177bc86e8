"""Conformalised quantile regression: the scores and the intervals by hand, and their coverage over many draws."""

import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Predictive
from pluribus.decisions.intervals import RegressionRules, fit_regression_rules

LEVELS = (0.05, 0.5, 0.95)


def predict_quantiles(low, high, levels=(0.1, 0.9)):
    """One member, whose mean lies outside its quantiles: intervals must not depend on it."""
    low, high = torch.as_tensor(low, dtype=torch.double), torch.as_tensor(high, dtype=torch.double)
    return Predictive(
        torch.stack([torch.full_like(low, 99.0), low, high], 1).unsqueeze(0), "regression", quantile_levels=levels
    )


def draw(rows: int, generator: torch.Generator) -> tuple[Predictive, torch.Tensor]:
    """Three members whose quantiles are too narrow by a half, and shifted; the noise is skewed, and larger for some rows."""
    scale = torch.rand(1, rows, 1, generator=generator, dtype=torch.double) + 0.05
    middle = 1000 + 0.1 * torch.randn(3, rows, 1, generator=generator, dtype=torch.double)
    outputs = torch.cat([middle, middle, middle + 0.7 * scale, middle + 1.5 * scale], 2)
    y = 1000 + scale[0] * torch.empty(rows, 1, dtype=torch.double).exponential_(generator=generator)
    return Predictive(outputs, "regression", quantile_levels=LEVELS), y


@pytest.mark.parametrize("scale", ["absolute", "normalised"])
@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_conformalised_quantiles_hold_the_target_as_often_as_asked(scale, coverage):
    """Over 600 draws of 200 + 100 rows the mean coverage is k / (n + 1) with all n = 200 held-out rows; 4 σ.

    The level of the quantiles, 0.9, is not what they hold, and need not be what is asked for."""
    generator, found, raw = torch.Generator().manual_seed(0), [], []
    for _ in range(600):
        p, y = draw(300, generator)
        rules = fit_regression_rules(take(p, slice(0, 200)), y[:200], coverage, scale)
        new = take(p, slice(200, 300))
        found.append(rules.decide(new).hold(y[200:]).double().mean())
        low, _, high = new.quantiles
        raw.append(((low <= y[200:]) & (y[200:] <= high)).double().mean())
    mean, error = torch.stack(found).mean().item(), torch.stack(found).std().item() / math.sqrt(len(found))
    assert error < 0.003
    assert abs(mean - math.ceil(201 * coverage - 1e-9) / 201) < 4 * error
    assert abs(torch.stack(raw).mean() - 0.9) > 0.1


def take(p, rows):
    return Predictive(p.outputs[:, rows], "regression", quantile_levels=p.quantile_levels)


def test_ends_are_moved_by_the_threshold_of_how_far_targets_lie_outside():
    """Scores of three rows are 2 (below), 1 (above) and −1 (inside); with a coverage of ½ the second smallest is taken."""
    p, y = predict_quantiles([0.0, 0.0, 0.0], [4.0, 4.0, 4.0]), torch.tensor([-2.0, 5.0, 3.0])
    rules = fit_regression_rules(p, y, coverage=0.5)
    assert (rules.scores, rules.scale, rules.quantiles) == ((-1.0, 1.0, 2.0), "absolute", (0.1, 0.9))
    found = rules.decide(predict_quantiles([10.0, -3.0], [10.5, 7.0]))
    assert found.low.flatten().tolist() == [9.0, -4.0]
    assert found.high.flatten().tolist() == [11.5, 8.0]
    assert found.mean.flatten().tolist() == [99.0, 99.0]


def test_normalised_ends_are_moved_in_proportion_to_their_distance():
    p, y = predict_quantiles([0.0, 0.0, 0.0], [4.0, 2.0, 1.0]), torch.tensor([-2.0, 3.0, 3.0])  # scores ½, ½ and 2
    rules = fit_regression_rules(p, y, coverage=0.5, scale="normalised")
    assert rules.scores == (0.5, 0.5, 2.0)
    found = rules.decide(predict_quantiles([10.0, 0.0], [10.5, 8.0]))
    assert found.low.flatten().tolist() == [9.75, -4.0]
    assert found.high.flatten().tolist() == [10.75, 12.0]


def test_quantiles_that_are_too_wide_shrink_and_an_interval_never_ends_before_it_begins():
    rules = RegressionRules(1.0, 0.5, "absolute", (-1.0, -1.0, 0.0), quantiles=(0.1, 0.9))
    found = rules.decide(predict_quantiles([0.0, 0.0], [10.0, 1.5]))
    assert found.low.flatten().tolist() == [1.0, 0.75]
    assert found.high.flatten().tolist() == [9.0, 0.75]


def test_an_interval_holds_all_outputs_of_a_row():
    outputs = torch.tensor([[[0.0, 0.0, -1.0, -1.0, 1.0, 1.0]] * 3])  # two outputs, the quantiles of each are −1 and 1
    p = Predictive(outputs, "regression", quantile_levels=(0.1, 0.9))
    rules = fit_regression_rules(p, torch.tensor([[0.0, 4.0], [-2.0, 0.0], [0.0, 0.0]]), coverage=0.5)
    assert rules.scores == (-1.0, 1.0, 3.0)


def test_the_level_is_what_lies_between_the_quantiles_if_none_is_named():
    p, y = draw(200, torch.Generator().manual_seed(0))
    assert fit_regression_rules(p, y).coverage == 0.9
    assert fit_regression_rules(predict_quantiles([0.0] * 9, [1.0] * 9, (0.3, 0.7)), torch.zeros(9)).coverage == 0.4
    told = fit_regression_rules(p, y).explain()
    assert told == ["intervals hold the target with 90 %: from the quantile 0.05 to 0.95, moved by the same amount everywhere"]
    assert "distance" in fit_regression_rules(p, y, scale="normalised").explain()[0]
    assert "infinite" in fit_regression_rules(take(p, slice(0, 5)), y[:5]).explain()[0]


def test_rules_for_other_quantiles_are_refused():
    rules = fit_regression_rules(*draw(200, torch.Generator().manual_seed(0)))
    with pytest.raises(ValueError, match="fit them anew"):
        rules.decide(predict_quantiles([0.0], [1.0]))
    with pytest.raises(ValueError, match="fit them anew"):
        rules.decide(Predictive(torch.zeros(1, 3, 1), "regression"))


@pytest.mark.parametrize("spec", [pluribus.Single(), pluribus.BatchEnsemble(2)], ids=str)
def test_an_ensemble_with_quantiles_is_calibrated_by_its_averages(spec):
    """1,000 held-out rows of a network that has learnt nothing: σ of the share of 2,000 new ones is 0.012."""
    torch.manual_seed(0)
    x = torch.randn(3000, 2)
    y = x.sum(1) + torch.randn(3000).exp()
    net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    ensemble = pluribus.ensemble(net, spec, task="regression", quantiles=(0.1, 0.9), example=x[:2])
    calibrated = pluribus.calibrate(ensemble, x[:1000], y[:1000])
    assert abs(calibrated.predict(x[1000:]).hold(y[1000:]).double().mean() - 0.8) < 4 * 0.016
    assert "from the quantile 0.1 to 0.9" in str(calibrated)
