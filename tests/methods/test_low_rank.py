import pytest
import torch
from torch import nn

import pluribus
from pluribus import LowRank
from tests.networks import NestedMLP, ResidualCNN, images, vectors

from .test_inner import LAYERS


def draw_additions(ensemble: pluribus.Ensemble) -> None:
    """Additions as training leaves them: none is zero."""
    with torch.no_grad():
        for name, parameter in ensemble.named_parameters():
            if name.endswith(("up", "biases")):
                parameter.add_(torch.randn_like(parameter))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("rank", [1, 3])
def test_a_members_plain_layer_answers_as_the_member_does(kind, rank):
    make, shape = LAYERS[kind]
    ensemble = pluribus.ensemble(make().double(), LowRank(members=3, rank=rank)).eval()
    draw_additions(ensemble)
    x = torch.randn(*shape, dtype=torch.double)
    answers = ensemble(x)
    assert not torch.allclose(answers[0], answers[1])
    for index in range(3):
        torch.testing.assert_close(ensemble.member(index)(x), answers[index], rtol=0, atol=1e-12)


def test_a_members_weight_is_the_shared_one_and_a_product_of_the_rank():
    layer = pluribus.ensemble(nn.Linear(7, 5).double(), LowRank(members=2, rank=3, scale=6.0)).net
    draw_additions(layer)
    expected = layer.shared + 6.0 / 3 * layer.up[1] @ layer.down[1]  # W + (α / r) B A
    torch.testing.assert_close(layer.to_plain(1).weight, expected.detach())
    assert torch.linalg.matrix_rank(layer.to_plain(1).weight - layer.shared) == 3


def test_a_rank_is_at_most_the_smaller_side():
    layers = [nn.Linear(9, 2), nn.Linear(3, 9), nn.Conv2d(1, 8, 3), nn.Conv2d(4, 4, 3, groups=4)]
    ranks = [pluribus.ensemble(layer, LowRank(rank=16)).net.up.shape[2] for layer in layers]
    assert ranks == [2, 3, 8, 1]


def test_members_begin_as_the_network_and_part_on_equal_data():
    net = NestedMLP().double().eval()
    ensemble = pluribus.ensemble(net, LowRank(members=3)).eval()
    x, y = vectors(16, torch.double), torch.arange(16) % 3
    torch.testing.assert_close(ensemble(x), net(x).expand(3, 16, 3), rtol=0, atol=1e-12)
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.05)
    apart = []
    for _ in range(5):
        optimizer.zero_grad()
        ensemble.loss(x, y).backward()
        optimizer.step()
        apart.append((ensemble(x) - ensemble(x).mean(0)).abs().max().item())
    assert all(before < after for before, after in zip([1e-6, *apart], apart, strict=False))


def test_members_come_apart_in_training():
    """Labels that inputs do not explain: whoever fits them, fits them in an own way."""
    torch.manual_seed(0)
    net, x, y = NestedMLP(), vectors(64), torch.randint(3, (64,))
    ensemble = pluribus.ensemble(net, LowRank(members=4)).train()
    optimizer = torch.optim.Adam(ensemble.param_groups(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        ensemble.loss(x, y).backward()
        optimizer.step()
    assert ensemble.eval().predict(vectors(200)).disagreement.mean() > 0.05


def test_frozen_weights_stay_and_are_not_trained():
    net = ResidualCNN()
    ensemble = pluribus.ensemble(net, LowRank(members=2, frozen=True, exclude="head")).train()
    trained = {name for name, parameter in ensemble.named_parameters() if parameter.requires_grad}
    assert not any(name.endswith("shared") for name in trained)
    assert {"net.head.weight", "net.stem.0.up"} <= trained
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.1, weight_decay=0.1)
    ensemble.loss(images(6), torch.arange(6) % 3).backward()
    optimizer.step()
    assert torch.equal(ensemble.net.stem[0].shared, net.stem[0].weight)


def test_the_shared_product_is_computed_once_where_members_share_their_input():
    """Of the first layer W is multiplied once, and only the additions for each member."""
    inputs, outputs, members, rank, rows = 64, 32, 5, 2, 8
    ensemble = pluribus.ensemble(nn.Linear(inputs, outputs, bias=False), LowRank(members, rank))
    each = rank * (inputs + outputs)
    assert ensemble.describe(torch.randn(rows, inputs)).flops == 2 * (inputs * outputs + members * each)


def test_no_weights_of_members_are_built_in_a_pass():
    """Nothing as large as the weights of all members is among what training keeps or computes."""
    sizes = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            found = function(*args, **(kwargs or {}))
            sizes.extend(each.numel() for each in (found if isinstance(found, tuple) else (found,)) if torch.is_tensor(each))
            return found

    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256)), LowRank(members=3, rank=2))
    x, y = torch.randn(4, 256), torch.arange(4)
    ensemble(x)
    with Watch():
        ensemble.loss(x, y).backward()
    assert max(sizes) == 256 * 256


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": 1}, "one member is the base network"),
        ({"rank": 0}, "rank must be at least 1, got 0"),
        ({"scale": 0.0}, "scale must be positive and finite"),
        ({"frozen": 3}, "frozen must be one of False, True"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LowRank(**options)
