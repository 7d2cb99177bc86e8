import math

import pytest
import torch
from scipy import integrate, stats

from pluribus import Predictive, metrics
from pluribus.metrics.regression import coverage, crps, gaussian_nll


def normal(rows=4000, members=2000, seed=0):
    """Members drawn about μ with σ, and targets from the same Gaussians."""
    generator = torch.Generator().manual_seed(seed)
    mu, sigma = torch.randn(rows, generator=generator).double(), torch.rand(rows, generator=generator).double() + 0.5
    members = mu + sigma * torch.randn(members, rows, generator=generator).double()
    return Predictive(members, "regression"), mu + sigma * torch.randn(rows, generator=generator).double()


def test_rmse_is_that_of_the_members_mean():
    p = Predictive(torch.tensor([[[1.0], [2.0]], [[3.0], [2.0]]]), "regression")
    assert metrics.rmse(p, torch.tensor([2.0, 5.0])) == pytest.approx((9 / 2) ** 0.5)


def two(mean, std, y):
    """Two members with this mean and spread."""
    return Predictive(torch.tensor([[mean - std], [mean + std]], dtype=torch.double), "regression"), torch.tensor([y]).double()


@pytest.mark.parametrize(("mean", "std", "y"), [(0.0, 1.0, 0.3), (2.0, 0.5, 3.5), (-1.0, 3.0, -4.0)])
def test_nll_and_crps_are_those_of_the_gaussian(mean, std, y):
    p, target = two(mean, std, y)
    assert gaussian_nll(p, target) == pytest.approx(-stats.norm(mean, std).logpdf(y))

    def squared(z):
        return (stats.norm(mean, std).cdf(z) - (z >= y)) ** 2

    area = sum(integrate.quad(squared, *ends, limit=200)[0] for ends in ((-60, y), (y, 60)))
    assert crps(p, target) == pytest.approx(area, rel=1e-6)


def test_known_noise_is_added_to_the_spread():
    p, target = two(0.0, 3.0, 1.0)
    assert gaussian_nll(p, target, noise=16.0) == pytest.approx(-stats.norm(0, 5).logpdf(1))


def test_of_one_member_the_crps_is_its_absolute_error():
    p = Predictive(torch.tensor([[1.0, 5.0]], dtype=torch.double), "regression")
    assert crps(p, torch.tensor([2.0, 2.0])) == pytest.approx(2.0, rel=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
def test_intervals_hold_the_share_that_they_promise(share):
    p, targets = normal()
    error = math.sqrt(share * (1 - share) / 4000)
    assert coverage(p, targets, share) == pytest.approx(share, abs=4 * error)


def test_shares_and_noise_that_make_no_sense_are_refused():
    p, targets = two(0.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="share must be between"):
        coverage(p, targets, 1.0)
    with pytest.raises(ValueError, match="must not be negative"):
        crps(p, targets, noise=-1.0)
