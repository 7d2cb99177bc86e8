"""Densities of responses are those of the draws."""

import pytest
import torch

import pluribus
from pluribus import Variance, VariationalDropout
from pluribus.papers.variance.response_densities import Response, average_by_class, measure_response


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)
    )


@pytest.mark.parametrize(
    "spec", [Variance(include="2"), VariationalDropout(include="2", log_alpha=0.5)], ids=["zero-mean", "noisy"]
)
def test_mean_and_deviation_are_those_of_many_draws(spec):
    ensemble = pluribus.ensemble(net(), spec).double().eval()
    x = torch.randn(3, 4, dtype=torch.double)
    found = measure_response(ensemble, x, "2")
    ensemble.samples = 40_000
    drawn = []
    hook = dict(ensemble.net.named_modules())["2"].register_forward_hook(lambda *args: drawn.append(args[2]))
    ensemble(x)
    hook.remove()
    draws = drawn[-1].unflatten(0, (40_000, 3))
    torch.testing.assert_close(found.std, draws.std(0), rtol=0.02, atol=0)
    error = found.std / 40_000**0.5
    assert ((found.mean - draws.mean(0)).abs() < 4.5 * error).all()


def test_a_density_integrates_to_one_and_has_its_mean_and_width():
    found = Response(torch.tensor([[0.3], [-1.0]]).double(), torch.tensor([[0.5], [2.0]]).double())
    at = torch.linspace(-20, 20, 8001, dtype=torch.double)
    density = found.density(at, 0)
    step = at[1] - at[0]
    torch.testing.assert_close(density.sum(1) * step, torch.ones(2).double())
    mean = (density * at).sum(1) * step
    torch.testing.assert_close(mean, found.mean[:, 0])
    torch.testing.assert_close(((density * at.square()).sum(1) * step - mean.square()).sqrt(), found.std[:, 0])


def test_classes_are_averaged_apart():
    found = Response(torch.zeros(3, 1).double(), torch.tensor([[1.0], [3.0], [2.0]]).double())
    at = torch.tensor([0.0])
    densities = average_by_class(found, torch.tensor([0, 0, 1]), at, 0)
    each = 1 / (2 * torch.pi) ** 0.5 / torch.tensor([1.0, 3.0, 2.0]).double()
    torch.testing.assert_close(densities[0][0], each[:2].mean().view(1))
    torch.testing.assert_close(densities[0][1], (each[:2] - each[:2].mean()).abs().mean().view(1))
    torch.testing.assert_close(densities[1][0], each[2:])


def test_a_layer_without_noise_is_refused():
    with pytest.raises(ValueError, match="layer must be one with random weights \\(2\\), got '0'"):
        measure_response(pluribus.ensemble(net(), Variance(include="2")), torch.randn(2, 4), "0")
