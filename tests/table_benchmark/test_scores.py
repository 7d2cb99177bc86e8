"""Scores of Gaussians with a mean and a variance for every row."""

import pytest
import torch
from scipy.stats import norm

from pluribus.table_benchmark.scores import Gaussians, score_gaussians


def test_scores_are_those_of_the_gaussians():
    generator = torch.Generator().manual_seed(0)
    mean, y = torch.randn(2, 50, generator=generator, dtype=torch.double)
    variance = torch.rand(50, generator=generator, dtype=torch.double)
    validation = Gaussians(torch.zeros(4), torch.full((4,), 0.5))
    found = score_gaussians(validation, torch.tensor([1.0, -1.0, 2.0, 0.0]), Gaussians(mean, variance), y)
    std = (variance + 1.0).sqrt()  # squared errors 1.5 less the mean variance 0.5
    z = (y - mean) / std
    density, share = torch.from_numpy(norm.pdf(z)), torch.from_numpy(norm.cdf(z))
    assert found["rmse"] == pytest.approx((y - mean).square().mean().sqrt().item(), abs=1e-12)
    assert found["nll"] == pytest.approx(-norm.logpdf(y, mean, std).mean(), abs=1e-10)
    assert found["crps"] == pytest.approx((std * (z * (2 * share - 1) + 2 * density - torch.pi**-0.5)).mean().item(), abs=1e-10)
    assert found["coverage"] == pytest.approx((z.abs() <= norm.ppf(0.95)).double().mean().item())
