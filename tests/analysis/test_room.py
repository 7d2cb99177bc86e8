"""Whether a network has room for several members: by hand, and on networks that have some and none."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus.analysis.room import ROOM, Room, measure_room


@pytest.mark.parametrize(("fitted", "is_enough"), [(1.0, True), (0.961, True), (0.959, False), (0.5, False)])
def test_it_is_enough_if_less_than_two_fifths_of_the_gap_are_lost(fitted, is_enough):
    room = Room(fitted=1.0, held_out=0.9, fitted_by_members=fitted)
    assert room.lost_share == pytest.approx((1 - fitted) / 0.1)
    assert room.is_enough is is_enough
    assert ROOM == 0.4


def test_a_network_without_a_gap_has_no_room():
    assert not Room(fitted=0.9, held_out=0.9, fitted_by_members=0.9).is_enough
    assert not Room(fitted=0.9, held_out=0.95, fitted_by_members=0.9).is_enough


def test_the_three_accuracies_are_those_of_the_predictions():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    one, two = (pluribus.ensemble(net, spec) for spec in (pluribus.Single(), pluribus.MIMO(members=2, init="fresh")))
    rows, others = ((torch.randn(count, 4), torch.randint(3, (count,))) for count in (200, 300))
    right = lambda ensemble, x, y: (ensemble.predict(x).labels == y).double().mean().item()  # noqa: E731
    assert measure_room(one, two, rows, others) == (right(one, *rows), right(one, *others), right(two, *rows))
