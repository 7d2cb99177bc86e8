"""Why table 3's third row cannot be what its caption says."""

import pytest
import torch

import pluribus
from pluribus import Variance
from pluribus.core.random_weights import find_random_layers
from pluribus.papers.variance.networks import build_network


def logits(ensemble, x, sign):
    """Of one draw of the weights, or of the same with all signs turned."""
    torch.manual_seed(3)
    ensemble.executor.prepare(ensemble, x)
    frozen = ensemble.freeze(1)
    for layer in find_random_layers(frozen.net).values():
        layer.frozen.mul_(sign)
    return frozen(x)[0]


@pytest.mark.parametrize("norm", ["none", "all"])
def test_without_biases_an_odd_network_after_the_noise_answers_with_z_and_minus_z_alike(norm):
    net = build_network("lenet", 0, size=16, width=0.2, norm=norm, bias=False, activation="tanh")
    ensemble = pluribus.ensemble(net, Variance(include="dense1")).double().eval()
    for name, parameter in ensemble.named_parameters():
        if "norm" in name and "bias" in name:
            parameter.data.uniform_(-1, 1)  # as it would be after training
    x = torch.rand(5, 1, 16, 16, dtype=torch.double)
    there, back = logits(ensemble, x, 1), logits(ensemble, x, -1)
    assert there.abs().max() > 0.01
    assert torch.allclose(there, -back) == (norm == "none")  # the shift of a BatchNorm breaks it


def test_then_one_draw_is_right_at_most_half_of_the_time():
    """z and −z cannot both be right, whatever the classifier."""
    z = torch.randn(1000, 10)
    y = torch.randint(0, 10, (1000,))
    assert not ((z.argmax(1) == y) & ((-z).argmax(1) == y)).any()
