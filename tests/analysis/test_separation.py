"""The conditional variances of the pre-activations of networks with several inputs."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis import measure_separation


def make_mimo(net=None, members=2):
    torch.manual_seed(0)
    net = net or nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    return pluribus.ensemble(net, pluribus.MIMO(members=members)).double()


def test_the_first_layer_has_the_variance_of_each_input_through_its_own_weights():
    ensemble, x = make_mimo(members=3), torch.randn(50, 4, dtype=torch.double)
    found = measure_separation(ensemble, x, contexts=2).variances["0"]
    for member in range(3):
        torch.testing.assert_close(found[member], (x @ ensemble.net[0].weights[member].T).var(0))


def test_a_deeper_layer_has_the_expectation_of_the_variance_and_not_the_variance_of_the_expectation():
    ensemble, x = make_mimo(), torch.randn(6, 4, dtype=torch.double)
    first, second = ensemble.net[0], ensemble.net[2]
    terms = [x @ weight.T for weight in first.weights]
    pairs = second((terms[0][:, None] + terms[1][None] + first.offset).relu())  # [x1, x2, units]
    expected = torch.stack([pairs.var(0).mean(0), pairs.var(1).mean(0)])
    found = measure_separation(ensemble, x, contexts=1000).variances["2"]
    torch.testing.assert_close(found, expected, rtol=0.05, atol=1e-3)


def test_units_with_inputs_of_their_own_are_separate_and_shared_ones_are_not():
    ensemble, x = make_mimo(), torch.randn(40, 4, dtype=torch.double)
    weights = ensemble.net[0].weights
    with torch.no_grad():
        weights[0, 3:] = 0
        weights[1, :3] = 0
    assert measure_separation(ensemble, x).by_layer()["0"] == pytest.approx(1.0)
    with torch.no_grad():
        weights[1] = weights[0] = torch.randn(6, 4)
    assert measure_separation(ensemble, x).by_layer()["0"] == pytest.approx(0.0, abs=1e-9)


def test_channels_are_units_and_idle_ones_are_left_out():
    ensemble = make_mimo(
        nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    )
    x = torch.randn(5, 3, 8, 8, dtype=torch.double)
    found = measure_separation(ensemble, x, contexts=3)
    first = next(iter(found.variances))
    layer = ensemble.net.get_submodule(first)
    assert found.variances[first].shape == (2, layer.weights.shape[1])
    with torch.no_grad():
        layer.weights[:, 0] = 0
    shares = measure_separation(ensemble, x, contexts=3).shares
    assert shares.isfinite().all()
    torch.testing.assert_close(shares.sum(0), torch.ones_like(shares[0]))


def test_the_ensemble_stays_as_it_was():
    ensemble, x = make_mimo(), torch.randn(5, 4, dtype=torch.double)
    ensemble.train()
    measure_separation(ensemble, x, contexts=1)
    assert ensemble.training
    assert not any(module._forward_hooks for module in ensemble.modules())


def test_members_that_see_the_same_input_have_nothing_to_separate():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), pluribus.BatchEnsemble(members=2))
    with pytest.raises(ValueError, match="BatchEnsemble see the same input"):
        measure_separation(ensemble, torch.randn(5, 4))
    with pytest.raises(ValueError, match="at least two rows, got 1"):
        measure_separation(make_mimo(), torch.randn(1, 4, dtype=torch.double))
