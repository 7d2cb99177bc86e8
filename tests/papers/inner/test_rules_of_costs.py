"""The rules of the IEN paper's table of costs, and the sizes of its networks."""

import pytest
import torch

from pluribus.models import resnet
from pluribus.papers import load_recipes
from pluribus.papers.inner.table_4 import PAPER, list_cells, read_numbers
from pluribus.papers.inner.training_costs import BASE, FUSED, LEAN, MAXOUT, NAIVE, SPARE, average_layers, measure

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
SIZES, COPIES, UNUSED, SMALL, CHEAPER, LONGER, FREE, DEAR = range(8)
NETWORK = "ResNet56, CIFAR-10"


def build(base=0.853, fused=3.398, spare=4.25, lean=1.0001, naive=3.4, maxout=3.6, quick=1.02, thin=1.03):
    counts = {BASE: round(base * 1e6), FUSED: round(fused * 1e6), SPARE: round(spare * 1e6), LEAN: round(lean * base * 1e6)}
    times = {BASE: 1.0, NAIVE: naive, MAXOUT: maxout, FUSED: quick, LEAN: thin}
    ratios = {row: {"median": value, "low": value, "high": value} for row, value in times.items()}
    timed = {"parameters": counts, "ratios": ratios, "seconds": 1.0}
    return {NETWORK: timed | {"ratios": {}, "seconds": None}, "ResNet-20": timed}


@pytest.mark.parametrize(
    ("claim", "changes", "outcome"),
    [
        (SIZES, {}, REPRODUCED),
        (SIZES, {"base": 0.85302 * 1.0049}, REPRODUCED),
        (SIZES, {"base": 0.85302 * 1.0051}, DIRECTION),
        (SIZES, {"base": 0.85302 * 0.949}, NOT),
        (COPIES, {"fused": 4.25 * 0.9951}, REPRODUCED),
        (COPIES, {"fused": 4.25 * 0.9949}, DIRECTION),
        (COPIES, {}, DIRECTION),
        (COPIES, {"fused": 3.001 * 0.853}, DIRECTION),
        (COPIES, {"fused": 2.999 * 0.853}, NOT),
        (COPIES, {"fused": 5.05 * 0.853}, NOT),
        (UNUSED, {}, REPRODUCED),
        (UNUSED, {"spare": 4.25 * 1.0051}, DIRECTION),
        (UNUSED, {"spare": 3.397}, NOT),
        (SMALL, {"lean": 1.00099}, REPRODUCED),
        (SMALL, {"lean": 1.00101}, DIRECTION),
        (SMALL, {"lean": 1.0101}, NOT),
        (CHEAPER, {"naive": 1.91}, REPRODUCED),
        (CHEAPER, {"naive": 3.99}, REPRODUCED),
        (CHEAPER, {"naive": 1.89}, DIRECTION),
        (CHEAPER, {"naive": 4.01}, DIRECTION),
        (CHEAPER, {"naive": 5.01}, NOT),
        (LONGER, {"maxout": 3.41}, REPRODUCED),
        (LONGER, {"maxout": 3.39}, DIRECTION),
        (LONGER, {"maxout": 1.01}, NOT),
        (FREE, {"quick": 1.05, "thin": 1.05}, REPRODUCED),
        (FREE, {"thin": 1.051}, DIRECTION),
        (FREE, {"quick": 1.249}, DIRECTION),
        (FREE, {"quick": 1.251}, NOT),
        (DEAR, {"naive": 3.01}, REPRODUCED),
        (DEAR, {"naive": 2.99}, DIRECTION),
        (DEAR, {"naive": 5.01}, DIRECTION),
        (DEAR, {"naive": 1.99}, NOT),
    ],
)
def test_table_4(claim, changes, outcome):
    assert load_recipes()["inner/table-4"].judge(build(**changes))[claim].outcome == outcome


@pytest.mark.slow
@pytest.mark.parametrize("network", list_cells("cpu"))
def test_the_published_networks_have_their_published_sizes_with_a_spare_layer(network):
    options = list_cells("cpu")[network] | {"repeats": 0}
    counts = measure(options, None)["parameters"]
    assert counts[LEAN] < 1.001 * counts[BASE]
    if network in read_numbers(PAPER[BASE]):
        assert counts[BASE] / 1e6 == pytest.approx(read_numbers(PAPER[BASE])[network], rel=0.004)
        assert counts[SPARE] / 1e6 == pytest.approx(read_numbers(PAPER[FUSED])[network], rel=0.004)


def test_the_naive_network_is_the_average_of_its_layers():
    net = average_layers(lambda: resnet(8, width=0.25)).eval()
    average = net[1][0].conv1
    x = torch.randn(2, 4, 8, 8)
    torch.testing.assert_close(average(x), sum(layer(x) for layer in average.layers) / 4)
    assert len({id(layer) for layer in average.layers}) == 4
