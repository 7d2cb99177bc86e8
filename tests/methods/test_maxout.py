import pytest
import torch
from torch import nn

import pluribus
from pluribus import Maxout

from .test_inner import LAYERS


@pytest.mark.parametrize("kind", LAYERS)
def test_it_is_the_maximum_of_separate_layers(kind):
    make, shape = LAYERS[kind]
    ensemble = pluribus.ensemble(make().double(), Maxout(copies=3, include="*"))
    layer = ensemble.net
    x = torch.randn(*shape, dtype=torch.double)
    plain = [layer.affine.make_layer(layer.weights[i], None if layer.biases is None else layer.biases[i])(x) for i in range(3)]
    torch.testing.assert_close(ensemble(x)[0], torch.stack(plain).amax(0), rtol=0, atol=1e-12)


def test_copies_that_tie_part_all_the_same():
    ensemble = pluribus.ensemble(nn.Linear(4, 3), Maxout(copies=2))
    layer = ensemble.net
    with torch.no_grad():
        layer.weights[1] = layer.weights[0]
        layer.biases[1] = layer.biases[0]
    ensemble.loss(torch.randn(8, 4), torch.randint(0, 3, (8,))).backward()
    assert not torch.equal(layer.weights.grad[0], layer.weights.grad[1])


def test_a_layer_of_zeros_starts_with_copies_that_differ():
    layer = nn.Linear(4, 3)
    nn.init.zeros_(layer.weight)
    made = pluribus.ensemble(layer, Maxout(copies=2)).net
    assert not torch.equal(made.weights[0], made.weights[1])
