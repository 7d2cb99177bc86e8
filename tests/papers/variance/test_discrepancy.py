"""Theorem 1, exactly."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from pluribus.papers.variance.discrepancy import distance, mmd, mmd_bound, prediction_bound


@pytest.mark.parametrize(("log_alpha", "weights"), [(0.0, 1), (2.0, 1), (-1.0, 1)])
def test_of_one_weight_it_is_the_integral_of_the_difference_of_densities(log_alpha, weights):
    """sup over |f| ≤ 1 of ∫ f (q⁰ − q) is ∫ |q⁰ − q|."""
    mu, sigma = 1.7, 1.7 * math.exp(log_alpha / 2)
    value = quad(lambda w: abs(norm.pdf(w, 0, sigma) - norm.pdf(w, mu, sigma)), -40, 40, points=[mu / 2], limit=500)[0]
    assert mmd(log_alpha, weights) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("weights", [1, 100, 10**6])
@pytest.mark.parametrize("log_alpha", [-5.0, 0.0, 5.0, 20.0])
def test_it_is_between_zero_and_the_bound_and_never_above_two(log_alpha, weights):
    assert 0 < mmd(log_alpha, weights) <= min(mmd_bound(log_alpha, weights), 2)


def test_the_bound_is_tight_for_large_alpha():
    assert mmd(30.0, 1000) == pytest.approx(mmd_bound(30.0, 1000), rel=1e-6)


def test_only_the_ratio_of_weights_to_alpha_counts():
    assert mmd(math.log(4.0), 8) == pytest.approx(mmd(0.0, 2), rel=1e-12)
    assert distance(math.log(4.0), 8) == pytest.approx(math.sqrt(2))


def test_no_averaged_probability_changes_by_more_than_half_of_it():
    """The worst network answers 1 on the half-space that q⁰ prefers: then the change is attained."""
    log_alpha, weights, draws = 1.0, 5, 400_000
    noise = torch.randn(2, draws, weights, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    total = noise.sum(2) * math.exp(log_alpha / 2)
    total[1] += weights
    answers = (total < weights / 2).double().mean(1)
    assert (answers[0] - answers[1]).item() == pytest.approx(prediction_bound(log_alpha, weights), abs=4 / draws**0.5)
