"""What activations pass on, and the initialisation that follows."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

from pluribus.analysis import (
    ACTIVATIONS,
    compute_activation_gain,
    compute_copy_variance,
    compute_torch_gain,
    expand_activation_gain,
    initialize_copies_,
)

HOMOGENEOUS = {"identity": 1.0, "relu": 0.5, "leaky-relu": (1 + 0.01**2) / 2}


@pytest.mark.parametrize("variance", [1e-4, 1.0, 50.0])
@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_a_positively_homogeneous_activation_has_one_gain_by_both_formulas(name, variance):
    assert compute_activation_gain(name, variance) == pytest.approx(HOMOGENEOUS[name], rel=1e-13)
    assert expand_activation_gain(name, variance) == pytest.approx(HOMOGENEOUS[name], rel=1e-13)


@pytest.mark.parametrize("variance", [0.25, 1.0, 9.0])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gains_are_those_of_another_quadrature(name, variance):
    def integrand(y):
        return ACTIVATIONS[name](torch.tensor(y, dtype=torch.double)).item() ** 2 * stats.norm.pdf(y, scale=np.sqrt(variance))

    end = 12 * math.sqrt(variance)
    halves = [integrate.quad(integrand, *ends, epsabs=1e-10, epsrel=1e-10)[0] for ends in ((-end, 0), (0, end))]
    assert compute_activation_gain(name, variance) == pytest.approx(sum(halves) / variance, rel=1e-8)


def test_the_gain_of_a_steep_activation_is_that_of_its_limit():
    """tanh(y) is ±1 nearly everywhere if responses are large: E tanh(σz)² = 1 − E sech(σz)² ≈ 1 − 2 φ(0)/σ."""
    sigma = 1e4
    expected = 1 - 2 / (math.sqrt(2 * math.pi) * sigma)
    assert compute_activation_gain("tanh", sigma**2) * sigma**2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("name", "expanded", "exact"), [("tanh", 1.0, 0.3943), ("sigmoid", 0.3125, 0.2934)])
def test_the_expansion_of_the_paper_is_exact_for_small_responses_and_wrong_for_usual_ones(name, expanded, exact):
    assert expand_activation_gain(name) == pytest.approx(expanded, abs=1e-9)
    assert compute_activation_gain(name) == pytest.approx(exact, abs=5e-5)
    assert compute_activation_gain(name, 1e-8) == pytest.approx(expand_activation_gain(name, 1e-8), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("linear", 1.0, ("identity", 1.0)),
        ("relu", math.sqrt(2), ("relu", math.sqrt(2))),
        ("leaky_relu", math.sqrt(2 / (1 + 0.01**2)), ("leaky-relu", math.sqrt(2 / (1 + 0.01**2)))),
        ("tanh", 5 / 3, ("tanh", 1.5925)),
        ("sigmoid", 1.0, ("sigmoid", 1.8462)),
        ("selu", 0.75, ("selu", 1.0)),
    ],
)
def test_the_gain_of_pytorch_is_one_over_beta_where_it_is_a_variance_gain(name, theirs, ours):
    assert nn.init.calculate_gain(name) == pytest.approx(theirs, rel=1e-12)
    assert compute_torch_gain(ours[0]) == pytest.approx(ours[1], rel=1e-12 if ours[1] == theirs else 5e-5)


def test_equation_10_keeps_the_size_of_responses():
    """n β² Var[w_i] / m = 1, by the definition of β²."""
    for name in ACTIVATIONS:
        variance = compute_copy_variance(copies=4, fan_in=50, gain=compute_torch_gain(name))
        assert 50 * compute_activation_gain(name) * variance / 4 == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("shape", [(4, 300, 200), (4, 100, 20, 3, 3)])
def test_copies_are_drawn_with_the_variance_of_equation_10_and_their_mean_is_kaimings(shape):
    """60,000 weights or more: the standard error of a variance is below 0.6 %, and the tolerance five times that."""
    weights, fan_in = torch.empty(shape, dtype=torch.double), math.prod(shape[2:])
    assert initialize_copies_(weights, gain=math.sqrt(2)) is weights
    assert weights.var().item() == pytest.approx(4 * 2 / fan_in, rel=0.03)
    assert weights.mean(0).var().item() == pytest.approx(2 / fan_in, rel=0.05)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compute_activation_gain("gelo"), "did you mean 'gelu'"),
        (lambda: compute_activation_gain("gelu", 0.0), "variance must be positive"),
        (lambda: compute_copy_variance(0, 5, 1.0), "copies must be at least 1"),
        (lambda: compute_copy_variance(2, 5, math.inf), "gain must be positive and finite"),
        (lambda: initialize_copies_(torch.empty(3, 4), 1.0), "add the axis of copies"),
    ],
)
def test_what_makes_no_sense_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
