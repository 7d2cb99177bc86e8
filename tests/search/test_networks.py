"""Operations, and the networks of cells."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus.methods.inner import Averaged
from pluribus.methods.maxout import Largest
from pluribus.search import BENCHMARK_OPERATIONS, NAS_BENCH_201, Cell, build_network, fold_network, make_operations
from pluribus.search.networks import PlainCell, Reduction


def make_cell(name: str) -> Cell:
    return Cell(NAS_BENCH_201, (name,) * 6)


def count_parameters(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("none", 73_306),  # the smallest network of NAS-Bench-201, 0.073306 M
        ("skip_connect", 73_306),
        ("avg_pool_3x3", 73_306),
        ("nor_conv_1x1", 73_306 + 5 * 6 * (16 * 16 + 32 + 32 * 32 + 64 + 64 * 64 + 128)),
        ("nor_conv_3x3", 1_531_546),  # the largest, 1.531546 M
        ("inner_conv_3x3", 73_306 + 5 * 6 * (4 * 9 * (16 * 16 + 32 * 32 + 64 * 64) + 2 * (16 + 32 + 64))),
        ("maxout_conv_3x3", 73_306 + 5 * 6 * (4 * 9 * (16 * 16 + 32 * 32 + 64 * 64) + 2 * (16 + 32 + 64))),
    ],
)
def test_networks_have_the_parameters_of_nas_bench_201(name, count):
    """Stem 464, reductions 14,464 and 57,600, head 128 + 650: together 73,306."""
    assert count_parameters(build_network(make_cell(name))) == count


def test_a_node_is_the_sum_of_what_its_edges_bring():
    x = torch.randn(2, 4, 5, 5, dtype=torch.double)
    operations = make_operations()
    assert torch.equal(PlainCell(make_cell("skip_connect"), 4, operations)(x), 4 * x)  # x, x + x, x + x + 2x
    assert torch.equal(PlainCell(make_cell("none"), 4, operations)(x), torch.zeros_like(x))
    one_path = Cell.parse("|skip_connect~0|+|none~0|skip_connect~1|+|none~0|none~1|skip_connect~2|")
    assert torch.equal(PlainCell(one_path, 4, operations)(x), x)
    assert torch.equal(BENCHMARK_OPERATIONS["none"](4)(x / 0), torch.zeros_like(x)), "zero times infinity is no zero"


def test_pooling_averages_the_pixels_inside_the_image():
    x = torch.randn(2, 4, 5, 5, dtype=torch.double)
    y = BENCHMARK_OPERATIONS["avg_pool_3x3"](4)(x)
    torch.testing.assert_close(y[:, :, 0, 0], x[:, :, :2, :2].mean((2, 3)))
    torch.testing.assert_close(y[:, :, 2, 3], x[:, :, 1:4, 2:5].mean((2, 3)))


@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions_average_or_compete_before_the_normalisation(kernel):
    x = torch.randn(8, 4, 5, 5, dtype=torch.double)
    operations = make_operations(copies=3, kernels=(1, 3))

    def normalize(y):
        return (y - y.mean((0, 2, 3), keepdim=True)) / (y.var((0, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt()

    blocks = {name: operations[f"{name}_conv_{kernel}x{kernel}"](4).double() for name in ("nor", "inner", "maxout")}
    responses = {
        name: [F.conv2d(x.relu(), w, padding=kernel // 2) for w in blocks[name][1].weights] for name in ("inner", "maxout")
    }
    assert len(responses["inner"]) == len(responses["maxout"]) == 3
    plain = F.conv2d(x.relu(), blocks["nor"][1].weight, padding=kernel // 2)
    torch.testing.assert_close(blocks["nor"](x), normalize(plain))
    torch.testing.assert_close(blocks["inner"](x), normalize(sum(responses["inner"]) / 3))
    torch.testing.assert_close(blocks["maxout"](x), normalize(torch.stack(responses["maxout"]).amax(0)))


def test_a_reduction_halves_images_of_even_and_odd_size():
    for size in (7, 8):
        assert Reduction(4)(torch.zeros(2, 4, size, size)).shape == (2, 8, 4, 4)
    even = torch.randn(2, 4, 8, 8)
    shortcut = Reduction(4).shortcut
    torch.testing.assert_close(shortcut(even), shortcut[1](F.avg_pool2d(even, 2)))


def test_folding_leaves_every_prediction_unchanged():
    cell = "|inner_conv_3x3~0|+|maxout_conv_3x3~0|nor_conv_1x1~1|"
    net = build_network(cell, classes=3, channels=1, width=4, cells=1, stacks=2).double()
    x = torch.randn(8, 1, 6, 6, dtype=torch.double)
    net(x)  # running statistics that are not those of a new network
    folded = fold_network(net)
    torch.testing.assert_close(folded(x), net.eval()(x))
    kinds = {type(module) for module in folded.modules()}
    assert Largest in kinds
    assert Averaged not in kinds
    assert count_parameters(net) - count_parameters(folded) == 3 * 9 * (4 * 4 + 8 * 8)


def test_the_network_of_a_cell_is_trained_like_any_other():
    net = build_network(
        "|inner_conv_3x3~0|+|skip_connect~0|maxout_conv_3x3~1|", classes=2, channels=1, width=2, cells=1, stacks=1
    )
    x = torch.randn(32, 1, 4, 4)
    ensemble = pluribus.ensemble(net, pluribus.Single())
    pluribus.fit(ensemble, (x, (x.mean((1, 2, 3)) > 0).long()), epochs=1, batch_size=16, progress=False)
    assert ensemble.predict(x).probs.shape == (32, 2)


def test_a_users_own_operations_are_used():
    operations = {"double": lambda channels: Scale(2.0), "triple": lambda channels: Scale(3.0)}
    cell = PlainCell(Cell.parse("|double~0|+|triple~0|double~1|"), 4, operations)
    x = torch.randn(2, 4, 3, 3)
    torch.testing.assert_close(cell(x), 7 * x)


class Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: build_network("|nor_conv_3x4~0|"), "did you mean 'nor_conv_3x3'"),
        (lambda: build_network("|mine~0|", operations={"mine": lambda channels: 3}), "must return an nn.Module, got int"),
        (lambda: build_network("|none~0|", classes=1), "classes must be at least 2"),
        (lambda: build_network("|none~0|", cells=0), "cells must be at least 1"),
        (lambda: make_operations(copies=1), "copies must be at least 2"),
        (lambda: make_operations(kernels=(2,)), "odd number"),
    ],
)
def test_wrong_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()
    with pytest.raises(TypeError, match="a FoundCell or a text, got int"):
        build_network(3)
