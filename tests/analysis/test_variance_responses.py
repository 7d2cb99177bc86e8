"""Variance responses: what is printed, what is exact, and what networks with drawn weights show."""

import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis import (
    LayerResponse,
    build_random_network,
    compute_activation_gain,
    compute_maximum_moments,
    compute_variance_gain,
    list_printed_gains,
    sample_response_variance,
    trace_variances,
)

WIDTH = 48
INNER, MAXOUT = LayerResponse(copies=4), LayerResponse(copies=4, reduction="max")
DROPOUT, INVERTED = LayerResponse(keep=0.5), LayerResponse(keep=0.5, inverted=True)


def assert_sampled(sampled, exact, precision=0.03):
    """The mean over networks is within 4 standard errors, and these are small enough to mean something."""
    assert sampled.error < precision * exact
    assert abs(sampled.value - exact) < 4 * sampled.error


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("activation", ["identity", "relu", "leaky-relu"])
def test_the_exact_gain_of_an_inner_ensemble_is_the_printed_one(activation, layers):
    for copies in (2, 4, 8):
        exact = compute_variance_gain(LayerResponse(copies=copies), layers, activation)
        assert exact == pytest.approx(list_printed_gains(copies, layers).inner, rel=1e-12)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_dropout_multiplies_by_p_and_inverted_dropout_by_one_over_p(keep):
    for layers in (1, 3):
        assert compute_variance_gain(LayerResponse(keep=keep), layers, "relu") == pytest.approx(keep**layers, rel=1e-12)
        inverted = LayerResponse(keep=keep, inverted=True)
        assert compute_variance_gain(inverted, layers, "relu") == pytest.approx(keep**-layers, rel=1e-12)


def test_one_half_is_the_gain_of_dropout_at_one_half_and_no_bound():
    printed = list_printed_gains(4).dropout
    assert compute_variance_gain(DROPOUT) == printed
    assert compute_variance_gain(LayerResponse(keep=0.9)) > printed
    assert compute_variance_gain(INVERTED) > 1


def test_with_rare_units_dropout_has_less_variance_than_an_inner_ensemble():
    """The paper: an inner ensemble of more than two has less variance than dropout. That holds at p = ½."""
    assert compute_variance_gain(INNER) < compute_variance_gain(DROPOUT)
    assert compute_variance_gain(LayerResponse(keep=0.1)) < compute_variance_gain(INNER)


@pytest.mark.parametrize("copies", [2, 3, 4, 8, 16, 64, 1000, 10**6])
def test_the_bounds_of_maxout_hold_for_one_layer(copies):
    exact, printed = compute_variance_gain(LayerResponse(copies=copies, reduction="max")), list_printed_gains(copies, c=0.4725)
    assert 1 / copies < exact, "an inner ensemble has less variance"
    assert printed.maxout_lower < exact < printed.maxout_upper
    assert exact < 1


def test_the_largest_constant_of_the_lower_bound_is_that_of_two_copies():
    products = [compute_maximum_moments(copies)[1] * math.log(copies) for copies in range(2, 200)]
    assert min(products) == products[0] == pytest.approx(0.4725, abs=1e-4)


@pytest.mark.parametrize(("copies", "ratio"), [(2, 1.741), (4, 1.207), (8, 1.061), (16, 1.006), (64, 0.972), (10**6, 0.968)])
def test_the_asymptote_of_maxout_is_far_off_for_few_copies_and_converges_slowly(copies, ratio):
    assert list_printed_gains(copies).maxout_asymptote / compute_maximum_moments(copies)[1] == pytest.approx(ratio, abs=1e-3)


def test_bounds_of_one_layer_are_not_given_for_more():
    printed = list_printed_gains(4, layers=2)
    assert (printed.maxout_lower, printed.maxout_asymptote) == (None, None)
    assert (printed.inner, printed.dropout, printed.maxout_upper) == (1 / 16, 1 / 4, 16)


def test_in_depth_maxout_multiplies_by_the_second_moment_of_the_maximum():
    """v_m M_m^(L−2). From three copies on the product grows with depth, though one layer's variance is smaller than 1."""
    for copies, grows in ((2, False), (3, True), (8, True)):
        mean, variance = compute_maximum_moments(copies)
        second = variance + mean**2
        response = LayerResponse(copies=copies, reduction="max")
        for layers in (1, 2, 6):
            exact = compute_variance_gain(response, layers)
            assert exact == pytest.approx(variance * second ** (layers - 1), rel=1e-11)
            assert exact < copies**layers
        assert (compute_variance_gain(response, 9) > 1) == grows


def test_other_activations_follow_their_gain_at_the_size_that_responses_have():
    """Each step of the recursion is n Var[w] β²(Var[y]) Var[y] / m."""
    traced = trace_variances(INNER, layers=4, activation="tanh", scale=3.0, start=0.7)
    expected = [0.7]
    for _ in range(4):
        expected.append(3.0 * compute_activation_gain("tanh", expected[-1]) * expected[-1] / 4)
    assert traced == pytest.approx(expected, rel=1e-12)
    assert compute_variance_gain(INNER, 4, "tanh") != pytest.approx(4.0**-4, rel=0.05), "no power of m"


@pytest.mark.parametrize(("layers", "activation"), [(1, "identity"), (2, "leaky-relu"), (3, "relu")])
@pytest.mark.parametrize("response", [INNER, MAXOUT, DROPOUT, INVERTED, LayerResponse(copies=4, keep=0.5)])
def test_networks_with_drawn_weights_show_the_exact_variance(response, activation, layers):
    """At a width of 48: for these activations the values are exact at every width."""
    scale = 1 / compute_activation_gain(activation)
    exact = trace_variances(response, layers, activation, scale)[-1]
    sampled = sample_response_variance(
        lambda: build_random_network(response, WIDTH, layers, activation, scale), WIDTH, networks=200, rows=16
    )
    assert_sampled(sampled, exact, precision=0.05)


@pytest.mark.parametrize("activation", ["tanh", "gelu", "sigmoid"])
def test_wide_networks_of_other_activations_come_near_the_values_of_infinite_width(activation):
    """At a width of 256 and 3 layers: within 4 %."""
    for response in (INNER, MAXOUT):
        exact = trace_variances(response, 3, activation, 2.0)[-1]
        sampled = sample_response_variance(
            lambda response=response: build_random_network(response, 256, 3, activation, 2.0), 256, networks=20
        )
        assert sampled.value == pytest.approx(exact, rel=0.04)


WIDE = 192
"""Conversion takes longer than products: few wide networks show as much as many narrow ones."""


def make_base(layers, activation=nn.Identity, gain=1.0):
    """Activation and layer in turn, without biases, with the weights of Kaiming He at this gain."""
    net = nn.Sequential(*(part for _ in range(layers) for part in (activation(), nn.Linear(WIDE, WIDE, bias=False))))
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0, gain / WIDE**0.5)
    return net


@pytest.mark.parametrize("layers", [1, 3])
def test_the_maxout_of_pluribus_has_the_variance_of_the_theory(layers):
    sampled = sample_response_variance(
        lambda: pluribus.ensemble(make_base(layers), pluribus.Maxout(copies=4)), WIDE, networks=30
    )
    assert_sampled(sampled, trace_variances(MAXOUT, layers)[-1], precision=0.05)


def test_the_dropout_of_pytorch_is_inverted():
    sampled = sample_response_variance(lambda: nn.Sequential(make_base(1), nn.Dropout(0.25)), WIDE, networks=50)
    assert_sampled(sampled, compute_variance_gain(LayerResponse(keep=0.75, inverted=True)))


@pytest.mark.parametrize("init", ["paper", "keep"])
def test_an_inner_ensemble_starts_with_the_variance_of_the_base_network(init):
    """Eq. 10 cancels 1/m^(L−1): at its start, Inner is no smaller than an ordinary network of the same gain."""
    sampled = sample_response_variance(
        lambda: pluribus.ensemble(make_base(3, nn.ReLU, 2**0.5), pluribus.Inner(copies=4, init=init)),
        WIDE,
        networks=40,
    )
    assert_sampled(sampled, trace_variances(LayerResponse(), 3, "relu", 2.0)[-1], precision=0.05)
    assert trace_variances(LayerResponse(), 3, "relu", 2.0)[-1] == pytest.approx(1, rel=1e-12)


def test_sampling_leaves_the_state_of_the_generator_and_repeats():
    before = torch.get_rng_state()
    first, second = (
        sample_response_variance(lambda: build_random_network(DROPOUT, 8), 8, networks=3, seed=seed) for seed in (5, 5)
    )
    assert first == second
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: LayerResponse(keep=0.0), "keep must be positive"),
        (lambda: LayerResponse(copies=0), "copies must be at least 1"),
        (lambda: LayerResponse(reduction="sum"), "reduction must be one of 'mean', 'max'"),
        (lambda: list_printed_gains(1), "copies must be at least 2"),
        (lambda: compute_variance_gain(INNER, 0), "layers must be at least 1"),
        (lambda: sample_response_variance(nn.Identity, 8, networks=1), "networks must be at least 2"),
    ],
)
def test_what_makes_no_sense_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
