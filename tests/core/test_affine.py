import pytest
import torch
from torch import nn

from pluribus.core.affine import Affine
from tests.methods.test_inner import LAYERS


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("shared", [True, False])
def test_each_runs_one_layer_a_member(kind, shared):
    make, shape = LAYERS[kind]
    layers = [make().double() for _ in range(3)]
    affine = Affine(layers[0])
    x = torch.randn(1 if shared else 3, *shape, dtype=torch.double)
    weight = torch.stack([layer.weight for layer in layers])
    bias = None if layers[0].bias is None else torch.stack([layer.bias for layer in layers])
    expected = torch.stack([layer(x[0 if shared else index]) for index, layer in enumerate(layers)])
    torch.testing.assert_close(affine.run_each(x, weight, bias), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_plain_layer_comes_back(kind):
    make, shape = LAYERS[kind]
    layer = make()
    again = Affine(layer).make_layer(layer.weight, layer.bias)
    assert type(again) is type(layer)
    assert again.extra_repr() == layer.extra_repr()
    x = torch.randn(*shape)
    torch.testing.assert_close(again(x), layer(x))


def test_a_plain_layer_shares_no_memory_with_its_source():
    layer = nn.Linear(3, 2)
    again = Affine(layer).make_layer(layer.weight, layer.bias)
    with torch.no_grad():
        again.weight.zero_()
    assert layer.weight.abs().sum() > 0


def test_fan_in_is_the_number_of_products_in_an_output():
    assert Affine(nn.Linear(6, 4)).fan_in == 6
    assert Affine(nn.Conv2d(8, 4, 3, groups=2)).fan_in == 4 * 9
    assert Affine(nn.ConvTranspose2d(8, 4, 4, stride=2)).fan_in == 8 * 16 / 4


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_deviations_leave_half_precision(dtype):
    """300² is infinite in float16, and √0 has no gradient."""
    layer = nn.Linear(4, 3).to(dtype)
    x = torch.tensor([[300.0] * 4, [0.0] * 4], dtype=dtype)
    std = Affine(layer).measure_deviation(x, layer.weight.square())
    std.sum().backward()
    assert std.isfinite().all()
    assert layer.weight.grad.isfinite().all()
