"""The memory of weights is counted without spending it."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, Inner, Maxout, MCDropout, Multihead, TreeNet, Variance
from pluribus.core.weight_memory import count_weight_bytes
from tests.contract_rows import METHODS
from tests.networks import ResidualCNN

READS_WEIGHTS = {"mixture-of-mimo", "mixture", "mixture-blob"}
"""Their conversion needs the numbers of the weights; what they store is an option of theirs, and does not grow with M."""


LARGER = [
    Inner(copies=6),
    Inner(copies=6, lean=True),
    Maxout(copies=5),
    MIMO(members=5),
    BatchEnsemble(members=6),
    TreeNet(members=5),
    Multihead(members=6),
    Variance(samples=9),
    MCDropout(samples=9),
    DeepEnsemble(members=6),
    DeepEnsemble(members=5, of=MIMO(members=4)),
    DeepEnsemble(members=2, of=Inner(copies=7)),
]


def count_built(made):
    return sum(tensor.numel() * tensor.element_size() for tensor in (*made.parameters(), *made.buffers()))


@pytest.mark.parametrize("spec", LARGER, ids=str)
def test_it_grows_linearly_with_the_size(spec):
    net = ResidualCNN()
    assert count_weight_bytes(net, spec) == count_built(pluribus.ensemble(net, spec))


@pytest.mark.parametrize("name", METHODS)
def test_it_is_that_of_the_ensemble_that_is_built(name):
    net, spec = ResidualCNN(), METHODS[name].spec
    built = count_built(pluribus.ensemble(net, spec))
    assert count_weight_bytes(net, spec) in ({built, None} if name in READS_WEIGHTS else {built})


def test_it_follows_the_dtype_and_leaves_network_and_generator_as_they_were():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).double()
    before, state = [p.clone() for p in net.parameters()], torch.random.get_rng_state()
    assert count_weight_bytes(net, DeepEnsemble(members=5)) == 5 * 8 * (4 * 3 + 3 + 3 * 2 + 2)
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
    assert torch.equal(state, torch.random.get_rng_state())


def test_what_cannot_be_converted_is_not_counted():
    assert count_weight_bytes(nn.ReLU(), BatchEnsemble(members=3)) is None
