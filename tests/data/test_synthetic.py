"""The papers' made-up data."""

import numpy as np
import pytest
import torch

from pluribus.core.errors import DataError
from pluribus.data import load


def test_four_gaussians_have_the_papers_means_and_unit_covariance():
    data = load("four-gaussians", rows=40_000)
    for label, mean in enumerate([(3.0, 3.0), (3.0, 10.0), (10.0, 3.0), (10.0, 10.0)]):
        x = data.train.x[data.train.y == label]
        # Of 10,000 draws the mean has a standard error of 0.01, a variance one of 0.014.
        torch.testing.assert_close(x.mean(0), torch.tensor(mean), atol=0.05, rtol=0)
        torch.testing.assert_close(torch.cov(x.T), torch.eye(2), atol=0.07, rtol=0)


def test_blundells_function_without_noise_is_the_equation():
    data = load("blundell", noise=0)
    x = data.train.x[:, 0]
    torch.testing.assert_close(data.train.y, x + 0.3 * torch.sin(2 * torch.pi * x) + 0.3 * torch.sin(4 * torch.pi * x))
    assert (len(data.train), len(data.test)) == (64, 3000)
    assert 0 <= float(data.test.x.min()) < 0.01 < 0.49 < float(data.test.x.max()) <= 0.5


def test_blundells_noise_acts_inside_and_outside():
    """To first order, y moves by ε (1 + 0.6π cos 2πx + 1.2π cos 4πx)."""
    noisy, plain = load("blundell", rows=20_000, noise=1e-3), load("blundell", rows=20_000, noise=0)
    assert torch.equal(noisy.train.x, plain.train.x)
    x = plain.train.x[:, 0].double()
    slope = 1 + 0.6 * torch.pi * torch.cos(2 * torch.pi * x) + 1.2 * torch.pi * torch.cos(4 * torch.pi * x)
    moved = (noisy.train.y - plain.train.y).double()
    assert float(moved.std()) == pytest.approx(1e-3 * float(slope.square().mean().sqrt()), rel=0.03)


@pytest.mark.parametrize("name", ["four-gaussians", "blundell"])
def test_a_seed_is_a_data_set(name):
    assert torch.equal(load(name, seed=3).train.x, load(name, seed=3).train.x)
    assert not np.array_equal(load(name, seed=3).train.x, load(name, seed=4).train.x)
    data = load(name, rows=10, test=0)
    assert (len(data.train), len(data.test)) == (10, 0)


@pytest.mark.parametrize("options", [{"rows": 1}, {"rows": 2.5}, {"test": -1}, {"noise": -1.0}])
def test_counts_that_make_no_sense_are_refused(options):
    with pytest.raises(DataError, match="must"):
        load("blundell", **options)
