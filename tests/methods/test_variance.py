"""Claims about distributions: with n draws a mean is known to σ/√n, a variance of a normal to about √(2/n)."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import ConversionError, Variance
from pluribus.core.passes import Pass, call_in_pass

LAYERS = {
    "linear": (lambda: nn.Linear(6, 4), (3, 6)),
    "conv": (lambda: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 4, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 2, stride=2), (2, 2, 3, 3)),
}
NOISES = ["gaussian", "bernoulli", "uniform"]


def answers(layer: nn.Module, x: torch.Tensor, draws: int, **options) -> torch.Tensor:
    ensemble = pluribus.ensemble(layer, Variance(samples=draws, include="*", **options)).eval()
    return ensemble(x).detach()


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("noise", NOISES)
def test_sampling_activations_has_the_mean_and_variance_of_sampling_weights(kind, noise):
    make, shape = LAYERS[kind]
    layer, x, draws = make().double(), torch.randn(*shape, dtype=torch.double), 20_000
    torch.manual_seed(1)
    by_activation = answers(layer, x, draws, noise=noise, sample="activations")
    torch.manual_seed(1)  # the same sigma
    by_weight = answers(layer, x, draws, noise=noise, sample="weights")
    bias = layer.bias.detach().view(-1, *(1 for _ in shape[2:]))
    spread = by_weight.std(0)
    assert ((by_activation.mean(0) - bias).abs() / spread).max() < 6 / draws**0.5
    assert ((by_weight.mean(0) - bias).abs() / spread).max() < 6 / draws**0.5
    torch.testing.assert_close(by_activation.var(0), by_weight.var(0), rtol=0.1, atol=0)


@pytest.mark.parametrize(("noise", "factor"), [("gaussian", 1), ("bernoulli", 1), ("uniform", 1 / 3)])
def test_the_variance_is_the_sum_of_squares(noise, factor):
    ensemble = pluribus.ensemble(nn.Linear(6, 4, bias=False).double(), Variance(noise=noise, samples=50_000, include="*"))
    x = torch.randn(2, 6, dtype=torch.double)
    expected = factor * x.square() @ ensemble.net.sigma.square().T  # eq. 4
    torch.testing.assert_close(ensemble.eval()(x).var(0), expected, rtol=0.05, atol=0)
    torch.testing.assert_close(ensemble.net.compute_std(x).square(), expected, rtol=1e-9, atol=1e-12)


def test_weight_samples_are_shared_by_the_rows_and_activation_samples_are_not():
    x = torch.randn(1, 6).expand(3, 6)
    shared = answers(nn.Linear(6, 4), x, 2, sample="weights")
    own = answers(nn.Linear(6, 4), x, 2, sample="activations")
    assert torch.allclose(shared[:, 0], shared[:, 1])
    assert not torch.allclose(own[:, 0], own[:, 1])


@pytest.mark.parametrize(("noise", "values"), [("bernoulli", [-1.0, 1.0]), ("uniform", None)])
def test_the_noises_are_what_they_are_called(noise, values):
    layer = pluribus.ensemble(nn.Linear(50, 40), Variance(noise=noise, include="*")).net
    epsilon = call_in_pass(Pass(1), layer.draw_noise, layer.sigma)
    assert epsilon.mean().abs() < 0.1
    if values:
        assert sorted(epsilon.unique().tolist()) == values
    else:
        assert -1 <= epsilon.min() < -0.99
        assert 0.99 < epsilon.max() <= 1


def test_by_default_the_layer_before_the_classifier_is_taken():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
    assert [change.name for change in pluribus.ensemble(net, Variance()).conversion.changes] == ["2"]
    assert [change.name for change in pluribus.ensemble(net, Variance(include="0")).conversion.changes] == ["0"]
    with pytest.raises(ConversionError, match="no layer before the classifier"):
        pluribus.ensemble(nn.Sequential(nn.Linear(3, 2)), Variance())


def test_mean_weights_alone_answer_at_chance_but_draws_can_learn():
    """Two classes that differ in scale only: no mean can tell them apart, a variance can."""
    net = nn.Sequential(nn.Linear(2, 64, bias=False), nn.ReLU(), nn.Linear(64, 2))
    ensemble = pluribus.ensemble(net, Variance(include="0", samples=64))
    optimizer = torch.optim.Adam(ensemble.param_groups(), lr=0.02)
    y = torch.randint(0, 2, (512,))
    x = torch.randn(512, 2).sign() * (0.2 + 2.0 * y[:, None])
    for _ in range(150):
        optimizer.zero_grad()
        ensemble.loss(x, y).backward()
        optimizer.step()
    assert (ensemble.predict(x).labels == y).float().mean() > 0.95


def test_the_standard_deviation_is_computed_once_for_all_draws():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), Variance(samples=16)).eval()
    ensemble(torch.randn(2, 4))
    seen = []
    layer = ensemble.net[0]
    original = layer.compute_std
    layer.compute_std = lambda x: (seen.append(x.shape), original(x))[1]
    ensemble(torch.randn(5, 4))
    assert seen == [(5, 4)]
