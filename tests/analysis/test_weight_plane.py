"""Networks in the plane through the weights of three members."""

import copy

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis import WeightLine, map_weight_line, map_weight_plane
from pluribus.analysis.weight_plane import (
    estimate_batchnorm,
    find_coordinates,
    find_shares,
    flatten_weights,
    list_corners,
    load_mixture,
)
from tests.contract_rows import METHODS
from tests.networks import NestedMLP, vectors


def make(spec, *, norm=False):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 8), *([nn.BatchNorm1d(8)] if norm else []), nn.ReLU(), nn.Linear(8, 3)]
    return pluribus.ensemble(nn.Sequential(*layers), spec)


@pytest.fixture(scope="module")
def rows():
    torch.manual_seed(1)
    return torch.randn(60, 4), torch.randint(3, (60,))


def test_coordinates_keep_the_distances_and_shares_find_their_way_back():
    weights = [torch.randn(50, dtype=torch.double) for _ in range(3)]
    corners, origin = find_coordinates(weights)
    for i in range(3):
        for j in range(3):
            torch.testing.assert_close((corners[i] - corners[j]).norm(), (weights[i] - weights[j]).norm())
    shares = find_shares(origin, corners)
    nearest = sum(share * weight for share, weight in zip(shares, weights, strict=True))
    torch.testing.assert_close(shares.sum(), torch.ones((), dtype=torch.double))
    for weight in weights[1:]:
        assert abs(nearest @ (weight - weights[0])) < 1e-9, "the nearest point to the origin is at right angles to the plane"


@pytest.mark.parametrize("spec", [pluribus.DeepEnsemble(members=3), pluribus.BatchEnsemble(members=3), pluribus.Multihead(3)])
def test_at_a_corner_the_network_is_the_member(spec, rows):
    ensemble, (x, _) = make(spec, norm=True).eval(), rows
    ensemble(x)
    networks, answer = list_corners(ensemble, (0, 1, 2))
    states = [network.state_dict() for network in copy.deepcopy(networks)]
    corners, _ = find_coordinates([flatten_weights(network) for network in networks])
    for index in range(3):
        load_mixture(networks[0], states, find_shares(corners[index], corners))
        torch.testing.assert_close(answer(networks[0], x), ensemble(x)[index], rtol=1e-4, atol=1e-5)


def test_the_middle_of_two_members_has_the_mean_of_their_weights(rows):
    ensemble, (x, y) = make(pluribus.DeepEnsemble(members=3)), rows
    networks = list_corners(ensemble, (0, 1, 2))[0]
    found = map_weight_plane(ensemble, x, y, points=3, margin=0.0)
    column = int((found.x - found.corners[1, 0] / 2).abs().argmin())
    middle = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    states = [network.state_dict() for network in networks]
    point = torch.stack([found.x[column], found.y[0]])
    shares = find_shares(point, found.corners).float()
    mixed = {name: sum(s * state[name] for s, state in zip(shares, states, strict=True)) for name in states[0]}
    middle.load_state_dict(dict(zip(middle.state_dict(), mixed.values(), strict=True)))
    logits = middle(x)
    assert found.nll[0, column].item() == pytest.approx(nn.functional.cross_entropy(logits, y).item(), rel=1e-5)
    assert found.accuracy[0, column] == (logits.argmax(-1) == y).float().mean()


def test_the_members_of_mimo_take_the_first_place_in_turn(rows):
    ensemble, (x, y) = make(pluribus.MIMO(members=3)).double().eval(), rows
    x = x.double()
    for index in range(3):
        twin = ensemble.rotate(index)
        torch.testing.assert_close(twin(x), ensemble(x).roll(-index, 0))
        views = torch.stack([x, x.flip(0), x.roll(1, 0)])
        before = ensemble(pluribus.core.pytrees.Views(views.roll(index, 0)))
        torch.testing.assert_close(twin(pluribus.core.pytrees.Views(views)), before.roll(-index, 0))
    found = map_weight_plane(ensemble, x, y, points=3)
    assert found.disagreement.max() > 0


def test_estimated_statistics_are_those_of_the_rows():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).eval()
    net[1].running_mean.fill_(9.0)
    x = torch.randn(40, 4)
    estimate_batchnorm(net, x, lambda network, rows: network(rows))
    torch.testing.assert_close(net[1].running_mean, net[0](x).mean(0).detach())
    torch.testing.assert_close(net[1].running_var, net[0](x).var(0).detach())
    assert net[1].momentum == 0.1
    assert not net[1].training


def test_in_training_mode_every_batch_has_its_own_statistics_and_nothing_is_changed(rows):
    """As `net.train()` would answer, batch by batch; in evaluation mode the running statistics would be wrong."""
    ensemble, (x, y) = make(pluribus.DeepEnsemble(members=2), norm=True).eval(), rows
    before = {name: value.clone() for name, value in ensemble.state_dict().items()}
    found = map_weight_line(ensemble, x, y, points=3, batchnorm_batch=30)
    for name, value in ensemble.state_dict().items():
        assert torch.equal(value, before[name]), name
    for place, share in ((0, 0.0), (1, 0.5), (2, 1.0)):
        network = ensemble.member(0)
        first, second = (ensemble.member(index).state_dict() for index in (0, 1))
        network.load_state_dict({name: torch.lerp(first[name].float(), second[name].float(), share) for name in first})
        logits = torch.cat([network.train()(part) for part in x.split(30)])
        assert found.nll[place].item() == pytest.approx(nn.functional.cross_entropy(logits, y).item(), rel=1e-5)
    assert not torch.allclose(found.nll, map_weight_line(ensemble, x, y, points=3).nll, rtol=1e-3)
    one = map_weight_plane(make(pluribus.DeepEnsemble(members=3), norm=True), x, y, points=2, batchnorm_batch=30)
    assert one.accuracy.isfinite().all()
    with pytest.raises(ValueError, match="choose one of them"):
        map_weight_line(ensemble, x, y, batchnorm_batch=30, batchnorm_rows=x)
    with pytest.raises(ValueError, match="at least 2"):
        map_weight_line(ensemble, x, y, batchnorm_batch=1)


FIXED = [name for name, row in METHODS.items() if row.plain_members and row.members > 1 and "mimo" not in name]


@pytest.mark.parametrize("name", FIXED)
def test_the_ends_of_a_line_are_the_members_of_every_method_that_has_some(name):
    torch.manual_seed(0)
    ensemble, x, y = pluribus.ensemble(NestedMLP(), METHODS[name].spec), vectors(30), torch.arange(30) % 3
    p = ensemble.predict(x, members=[1, 0])
    found = map_weight_line(ensemble, x, y, members=(1, 0), points=3)
    for place, member in ((0, 0), (2, 1)):
        expected = nn.functional.nll_loss(p.member_log_probs[member], y).item()
        assert found.nll[place].item() == pytest.approx(expected, rel=1e-4)


def test_between_two_members_of_a_mixture_are_the_coefficients_between_theirs():
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(NestedMLP().double(), pluribus.Mixture(members=2, parameters=2.0))
    networks = list_corners(ensemble, (0, 1))[0]
    states = [{name: value.clone() for name, value in network.state_dict().items()} for network in networks]
    load_mixture(networks[0], states, torch.tensor([0.25, 0.75]))
    layer = ensemble.net.body[1][0]
    between = 0.25 * layer.coefficients[:1] + 0.75 * layer.coefficients[1:]
    weight = layer.weights(between, layer.where[:1])[0]
    torch.testing.assert_close(networks[0].body[1][0].weight, weight, rtol=0, atol=1e-12, check_stride=False)


def test_what_has_no_plane_is_refused(rows):
    x, y = rows
    with pytest.raises(ValueError, match="three different members"):
        map_weight_plane(make(pluribus.DeepEnsemble(members=3)), x, y, members=(0, 1, 1))
    same, other = torch.ones(5), torch.arange(5.0)
    with pytest.raises(ValueError, match="equal weights"):
        find_coordinates([same, same, other])
    with pytest.raises(ValueError, match="on one line"):
        find_coordinates([same, other, 2 * other - same])
    with pytest.raises(ValueError, match="a regression"):
        map_weight_plane(pluribus.ensemble(nn.Linear(4, 1), pluribus.DeepEnsemble(3), task="regression"), x, y)
    with pytest.raises(pluribus.core.errors.Unsupported):
        map_weight_plane(make(pluribus.MCDropout()), x, y)


def test_a_line_goes_from_one_member_to_the_other(rows):
    ensemble, (x, y) = make(pluribus.DeepEnsemble(members=3)), rows
    found = map_weight_line(ensemble, x, y, members=(2, 0), points=5)
    labels = ensemble.predict(x).members.argmax(-1)
    assert found.accuracy[0] == (labels[2] == y).float().mean()
    assert found.accuracy[-1] == (labels[0] == y).float().mean()
    first, last = (ensemble.member(index).state_dict() for index in (2, 0))
    middle = ensemble.member(0)
    middle.load_state_dict({name: (first[name] + last[name]) / 2 for name in first})
    assert found.nll[2].item() == pytest.approx(nn.functional.cross_entropy(middle(x), y).item(), rel=1e-5)
    with pytest.raises(ValueError, match="two different members"):
        map_weight_line(ensemble, x, y, members=(1, 1))


def test_the_barrier_is_the_fall_below_the_straight_line():
    shares = torch.tensor([0.0, 0.5, 1.0])
    assert WeightLine(shares, torch.tensor([0.9, 0.5, 0.7]), shares).barrier == pytest.approx(0.3)
    assert WeightLine(shares, torch.tensor([0.9, 0.85, 0.7]), shares).barrier == 0.0
