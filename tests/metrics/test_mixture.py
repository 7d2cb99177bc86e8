"""Scores of regressions whose members predict noise, against numerical integration and by hand."""

import math

import pytest
import torch
from scipy import integrate, stats

from pluribus import Predictive, metrics
from pluribus.metrics import noise as noises
from pluribus.metrics.regression import LEVELS, find_reach
from pluribus.metrics.streaming import Tally

MEANS, STDS = (-1.0, 0.5, 4.0), (0.5, 2.0, 1.0)


def predict(means=MEANS, stds=STDS):
    """One row, three members."""
    outputs = torch.tensor([[[mean, std**2]] for mean, std in zip(means, stds, strict=True)], dtype=torch.double)
    return Predictive(outputs, "regression", has_noise=True)


def integrate_crps(cdf, y):
    ends = ((-60, y), (y, 60))
    return sum(integrate.quad(lambda z: (cdf(z) - (z >= y)) ** 2, *each, limit=300)[0] for each in ends)


def draw_rows(rows=4000):
    """Targets from the mixture of two members, whose noise and spread differ from row to row."""
    torch.manual_seed(0)
    means, variances = torch.randn(2, rows, 1, dtype=torch.double), torch.rand(2, rows, 1, dtype=torch.double) + 0.2
    p = Predictive(torch.cat([means, variances], 2), "regression", has_noise=True)
    who = torch.randint(2, (1, rows, 1))
    y = means.gather(0, who) + variances.gather(0, who).sqrt() * torch.randn(1, rows, 1, dtype=torch.double)
    return p, y[0, :, 0]


@pytest.mark.parametrize("y", [-3.0, 0.2, 4.4])
@pytest.mark.parametrize("more", [0.0, 1.5])
def test_mixture_scores_are_those_of_the_mixture(y, more):
    target, stds = torch.tensor([y], dtype=torch.double), [math.sqrt(std**2 + more) for std in STDS]
    each = [stats.norm(mean, std) for mean, std in zip(MEANS, stds, strict=True)]
    density = sum(one.pdf(y) for one in each) / 3
    assert metrics.mixture_nll(predict(), target, more) == pytest.approx(-math.log(density), rel=1e-12)
    area = integrate_crps(lambda z: sum(one.cdf(z) for one in each) / 3, y)
    assert metrics.mixture_crps(predict(), target, more) == pytest.approx(area, rel=1e-6)


@pytest.mark.parametrize("y", [-3.0, 0.2, 4.4])
def test_gaussian_scores_are_those_of_the_whole_variance(y):
    target = torch.tensor([y], dtype=torch.double)
    mean = sum(MEANS) / 3
    variance = sum(std**2 for std in STDS) / 3 + sum((each - mean) ** 2 for each in MEANS) / 3
    one = stats.norm(mean, math.sqrt(variance))
    assert metrics.gaussian_nll(predict(), target) == pytest.approx(-one.logpdf(y), rel=1e-12)
    assert metrics.crps(predict(), target) == pytest.approx(integrate_crps(one.cdf, y), rel=1e-6)
    assert metrics.width(predict(), 0.9) == pytest.approx(2 * one.interval(0.9)[1] - 2 * mean, rel=1e-10)


def test_of_one_member_mixture_and_gaussian_are_the_same():
    p, y = draw_rows(50)
    alone = Predictive(p.outputs[:1], "regression", has_noise=True)
    assert metrics.mixture_nll(alone, y) == pytest.approx(metrics.gaussian_nll(alone, y), rel=1e-12)
    assert metrics.mixture_crps(alone, y) == pytest.approx(metrics.crps(alone, y), rel=1e-12)
    with pytest.raises(ValueError, match="must not be negative"):
        metrics.mixture_crps(alone, y, noise=-1.0)


def test_a_mixture_scores_its_own_targets_better_than_its_gaussian():
    p, y = draw_rows()
    assert metrics.mixture_nll(p, y) < metrics.gaussian_nll(p, y)
    assert metrics.mixture_crps(p, y) < metrics.crps(p, y)


def test_the_calibration_curve_is_the_diagonal_of_a_gaussian_that_is_right():
    """4,000 targets: σ is at most 0.008."""
    torch.manual_seed(0)
    std = torch.rand(4000, 1, dtype=torch.double) + 0.1
    p = Predictive(torch.cat([torch.zeros_like(std), std.square()], 1).unsqueeze(0), "regression", has_noise=True)
    y = (std * torch.randn_like(std))[:, 0]
    held = metrics.interval_calibration(p, y)
    assert len(held) == len(LEVELS) == 19
    assert max(abs(one - level) for one, level in zip(held, LEVELS, strict=True)) < 4 * 0.008
    assert held == [metrics.coverage(p, y, level) for level in LEVELS]
    assert find_reach(0.9) == pytest.approx(stats.norm.ppf(0.95), rel=1e-10)
    too_sure = Predictive(p.outputs * torch.tensor([1, 0.25]), "regression", has_noise=True)
    assert metrics.interval_calibration(too_sure, y, levels=[0.95])[0] == pytest.approx(
        2 * stats.norm.cdf(find_reach(0.95) / 2) - 1, abs=4 * 0.008
    )


def test_factors_of_the_variance_give_the_likelihood_of_that_variance():
    square, variance = torch.rand(5, 2, dtype=torch.double), torch.rand(5, 2, dtype=torch.double) + 0.1
    table = noises.nll_at_factors(square, variance)
    for place in (0, noises.NO_FACTOR, 70):
        whole = variance * math.exp(noises.LOG_FACTORS[place].item())
        by_hand = -torch.distributions.Normal(0.0, whole.sqrt()).log_prob(square.sqrt()).mean(1)
        torch.testing.assert_close(table[:, place], by_hand, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("wrong", [0.1, 1.0, 10.0])
def test_calibration_removes_a_wrong_factor_of_predicted_noise(wrong):
    torch.manual_seed(0)
    std = torch.rand(2000, 1, dtype=torch.double) + 0.1
    y = (std * torch.randn_like(std))[:, 0]
    p = Predictive(torch.cat([torch.zeros_like(std), wrong * std.square()], 1).unsqueeze(0), "regression", has_noise=True)
    right = Predictive(torch.cat([torch.zeros_like(std), std.square()], 1).unsqueeze(0), "regression", has_noise=True)
    assert metrics.calibrated_gaussian_nll(p, y) == pytest.approx(metrics.gaussian_nll(right, y), abs=0.005)


def test_sums_over_batches_have_the_likelihood():
    p, y = draw_rows(60)
    tally = Tally("regression", has_noise=True)
    for rows in torch.arange(60).split(25):
        tally.add(Predictive(p.outputs[:, rows], "regression", has_noise=True), y[rows])
    assert tally.scores() == pytest.approx({"rmse": metrics.rmse(p, y), "nll": metrics.gaussian_nll(p, y)}, rel=1e-12)
