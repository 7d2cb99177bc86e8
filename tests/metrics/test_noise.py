"""Calibrated NLL of a regression by cross-fitted noise variances."""

import math

import pytest
import torch

from pluribus.core.predictive import Predictive
from pluribus.metrics import calibrated_gaussian_nll, gaussian_nll
from pluribus.metrics.noise import LOG_NOISES, NEUTRAL, nll_at_noises


def draw_rows(rows, noise, spread=0.0, outputs=1, seed=0):
    """Members that scatter by `spread` about a mean, and targets that scatter about it by `noise` (standard deviations)."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(rows, outputs, generator=generator, dtype=torch.double)
    p = Predictive(torch.stack([mean - spread, mean + spread]), "regression")
    return p, mean + noise * torch.randn(rows, outputs, generator=generator, dtype=torch.double)


def test_the_table_has_the_nll_of_every_noise_variance():
    p, y = draw_rows(9, 1.0, spread=0.4, outputs=2)
    square, variance = (y - p.mean).square(), p.variance
    table = nll_at_noises(square, variance)
    for place in (0, 40, NEUTRAL, 100):
        noise = square.mean().item() * math.exp(LOG_NOISES[place].item())
        assert table[:, place].mean().item() == pytest.approx(gaussian_nll(p, y, noise), rel=1e-12)


@pytest.mark.parametrize(("noise", "spread"), [(2.0, 0.0), (1.0, 0.6), (0.3, 0.29)])
def test_it_is_close_to_the_nll_of_the_true_noise(noise, spread):
    """A fit of one number on 2,000 rows costs about 1/4000 nats."""
    p, y = draw_rows(4000, math.hypot(noise, spread), spread)
    assert calibrated_gaussian_nll(p, y) == pytest.approx(gaussian_nll(p, y, noise**2), abs=2e-3)


def test_a_noise_variance_that_is_added_to_the_prediction_is_not_judged():
    """Errors decide: the mean that is closer to the targets has the lower NLL, and its logarithm is the difference."""
    p, y = draw_rows(4000, 1.0)
    far = Predictive(p.outputs + 1.0, "regression")
    assert calibrated_gaussian_nll(far, y) - calibrated_gaussian_nll(p, y) == pytest.approx(0.5 * math.log(2), abs=0.03)


def test_members_that_spread_more_than_they_err_get_no_noise():
    p, y = draw_rows(500, 0.5, spread=1.0)
    assert calibrated_gaussian_nll(p, y) == pytest.approx(gaussian_nll(p, y, 0.0), abs=1e-3)


def test_a_scale_of_the_targets_shifts_it_by_its_logarithm():
    p, y = draw_rows(60, 1.0, spread=0.5)
    scaled = calibrated_gaussian_nll(Predictive(1e6 * p.outputs, "regression"), 1e6 * y)
    assert scaled == pytest.approx(calibrated_gaussian_nll(p, y) + math.log(1e6), rel=1e-9)
