"""Layers that stand after the branch and before members differ: they run once, and no answer changes."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MCDropout, Variance
from pluribus.core.repeated_rows import RepeatAnswer, TakeOneMember
from tests.networks import ResidualCNN, images

LAST = "blocks.2.conv2"
"""The shortcut goes around it: members part on entering the block, and its first convolution gets the same rows for all."""


def build() -> pluribus.Ensemble:
    torch.manual_seed(0)
    return pluribus.ensemble(ResidualCNN().double(), Variance(include=LAST, samples=4), example=images().double()).eval()


def count_rows(ensemble, name, answer) -> list[int]:
    """With how many rows the weights of a layer were used."""
    layer, rows = ensemble.net.get_submodule(name), []
    run = layer._conv_forward
    layer._conv_forward = lambda x, *others: rows.append(len(x)) or run(x, *others)
    answer(ensemble)
    return rows


def test_the_first_layer_of_a_block_runs_once_for_all_members():
    ensemble, x = build(), images().double()
    assert ensemble.executor.plan.branch == ("module", "blocks.2")
    assert ensemble.executor.plan.repeated == {"blocks.2.conv1"}
    assert count_rows(ensemble, "blocks.2.conv1", lambda it: it.predict(x)) == [len(x)]


def test_every_member_answers_as_it_does_alone():
    frozen, x = build().freeze(4), images().double()
    members = frozen.predict(x).outputs
    assert frozen.executor.plan.repeated == {"blocks.2.conv1"}
    for index in range(4):
        torch.testing.assert_close(members[index], frozen.member(index)(x), rtol=0, atol=1e-12)
    assert not torch.allclose(members[0], members[1])


def test_passes_with_gradients_run_it_for_every_member():
    ensemble, x = build(), images().double()
    assert count_rows(ensemble, "blocks.2.conv1", lambda it: it(x)) == [4 * len(x)]


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_hook_of_the_user_sees_the_rows_of_all_members(register):
    ensemble, x, seen = build(), images().double(), []
    before = ensemble.freeze(4)
    answer = before.predict(x).outputs
    getattr(before.net.get_submodule("blocks.2.conv1"), register)(lambda module, args, *_: seen.append(len(args[0])))
    torch.testing.assert_close(before.predict(x).outputs, answer, rtol=0, atol=1e-12)
    assert seen == [4 * len(x)]


class CalledTwice(nn.Module):
    """A block that calls one layer before and after the layer in which members differ."""

    def __init__(self) -> None:
        super().__init__()
        self.shared, self.own, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(x + self.shared(torch.relu(self.own(torch.relu(self.shared(x))))))


def test_a_layer_that_also_runs_afterwards_runs_for_every_member():
    net = nn.Sequential(nn.Linear(4, 4), CalledTwice()).double()
    x = torch.randn(5, 4, dtype=torch.double)
    ensemble = pluribus.ensemble(net, Variance(include="1.own", samples=3), example=x).freeze(3)
    members = ensemble.predict(x).outputs
    assert ensemble.executor.plan.branch == ("module", "1")
    assert not ensemble.executor.plan.repeated
    for index in range(3):
        torch.testing.assert_close(members[index], ensemble.member(index)(x), rtol=0, atol=1e-12)


def test_plain_members_have_no_hooks():
    frozen = build().freeze(2)
    frozen.predict(images().double())
    modules = [*frozen.member(0).modules(), *frozen.fold().modules()]
    hooks = [hook for m in modules for hook in (*m._forward_pre_hooks.values(), *m._forward_hooks.values())]
    assert not [hook for hook in hooks if isinstance(hook, (TakeOneMember, RepeatAnswer))]


def test_draws_of_dropout_differ_although_their_block_begins_with_common_work():
    net = nn.Sequential(ResidualCNN().double())
    net[0].blocks[2].conv2 = nn.Sequential(nn.Dropout(0.5), net[0].blocks[2].conv2)
    ensemble = pluribus.ensemble(net, MCDropout(samples=3)).eval()
    outputs = ensemble.predict(images().double()).outputs
    assert ensemble.executor.plan.repeated == {"0.blocks.2.conv1"}
    assert (outputs[0] - outputs[1]).abs().max() > 1e-6
