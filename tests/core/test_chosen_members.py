"""`predict(x, members=…)`: only the members that are asked for answer, as they do among all."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, MCDropout, Mixture, Multihead, TreeNet, Variance
from pluribus.core import execution
from pluribus.core.flop_counting import FlopCounter
from tests.contract_rows import METHODS
from tests.networks import NestedMLP, ResidualCNN, images, vectors

FIXED = [name for name, row in METHODS.items() if row.plain_members and row.members > 1]


def count_flops(ensemble: pluribus.Ensemble, x: torch.Tensor, members) -> int:
    with FlopCounter() as counter:
        ensemble.predict(x, members=members)
    return counter.get_total_flops()


@pytest.mark.parametrize("name", FIXED)
def test_the_first_members_and_any_others_answer_as_they_do_among_all(name):
    torch.manual_seed(0)
    ensemble, x = pluribus.ensemble(NestedMLP().double(), METHODS[name].spec), vectors(5, torch.double)
    whole = ensemble.predict(x).outputs
    count = len(whole)
    for members, numbers in ((1, [0]), (2, [0, 1]), ([count - 1, 0], [count - 1, 0]), ([1], [1]), (count, range(count))):
        found = ensemble.predict(x, members=members).outputs
        torch.testing.assert_close(found, whole[list(numbers)], rtol=0, atol=1e-12)
    assert ensemble.members == count, "the ensemble itself still has all of them"


@pytest.mark.parametrize("spec", [BatchEnsemble(3, batchnorm="own"), Mixture(3, parameters=2.0), TreeNet(3)], ids=str)
@pytest.mark.parametrize("apart", [False, True])
def test_chosen_members_have_their_own_normalisation_however_they_run(spec, apart, monkeypatch):
    torch.manual_seed(0)
    ensemble, x = pluribus.ensemble(ResidualCNN().double(), spec), images(4, torch.double)
    ensemble.train()(x)  # running statistics of each member's own
    monkeypatch.setattr(execution, "APART_SIZE", 1 if apart else 2**40)
    whole = ensemble.predict(x).outputs
    torch.testing.assert_close(ensemble.predict(x, members=[2, 0]).outputs, whole[[2, 0]], rtol=0, atol=1e-12)
    assert ensemble.training


def test_a_loader_and_chunks_answer_by_the_chosen_members():
    ensemble, x = pluribus.ensemble(NestedMLP().double(), DeepEnsemble(3)), vectors(11, torch.double)
    whole = ensemble.predict(x).outputs
    loader = DataLoader(TensorDataset(x, torch.zeros(11)), batch_size=4)
    for rows in (loader, x):
        found = ensemble.predict(rows, batch_size=3, members=[2, 1])
        torch.testing.assert_close(found.outputs, whole[[2, 1]], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "spec", [DeepEnsemble(4), DeepEnsemble(4, stacked=True), BatchEnsemble(4), Mixture(4, parameters=2.0)], ids=str
)
def test_the_other_members_are_not_computed(spec):
    """One of four members takes a quarter of the FLOPs; of a mixture also what its shared layers take."""
    ensemble, x = pluribus.ensemble(NestedMLP(), spec), vectors(64)
    ensemble.predict(x[:2])
    whole, one, two = (count_flops(ensemble, x, members) for members in (True, 1, [3, 1]))
    shared = 64 * 2 * 12 * 16 if isinstance(spec, Mixture) else 0
    assert one - shared == pytest.approx((whole - shared) / 4, rel=0.01)
    assert two - shared == pytest.approx((whole - shared) / 2, rel=0.01)


@pytest.mark.parametrize("spec", [MIMO(3), Multihead(3)], ids=str)
def test_heads_are_chosen_but_the_body_runs_once_whatever_is_asked_for(spec):
    ensemble, x = pluribus.ensemble(NestedMLP(), spec), vectors(64)
    ensemble.predict(x[:2])
    head = 64 * 2 * 16 * 3
    assert count_flops(ensemble, x, True) - count_flops(ensemble, x, 1) == 2 * head


@pytest.mark.parametrize("spec", [MCDropout(samples=6), Variance(samples=6), DeepEnsemble(2, of=Variance(samples=3))], ids=str)
def test_of_draws_as_many_run_as_are_asked_for(spec):
    ensemble, x = pluribus.ensemble(NestedMLP(), spec), vectors(4)
    seen = []
    last = [module for module in ensemble.modules() if isinstance(module, nn.ReLU)][-1]
    ensemble.predict(x)
    last.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    assert ensemble.predict(x, members=[0, 5]).outputs.shape == (2, 4, 3)
    assert ensemble.predict(x, members=2).outputs.shape == (2, 4, 3)
    assert seen in ([8, 8], [4]), "two draws of four rows; of the second part one draw, or none"
    frozen = ensemble.freeze()
    whole = frozen.predict(x).outputs
    torch.testing.assert_close(frozen.predict(x, members=[4, 1]).outputs, whole[[4, 1]])


def test_draws_of_a_branch_are_chosen_by_number():
    """Member i·K + k is draw k of branch i. The draws of a branch are equal where nothing is dropped, so its number shows."""
    spec, x = TreeNet(2, of=MCDropout(rate=1e-9, samples=3)), vectors(4, torch.double)
    ensemble = pluribus.ensemble(NestedMLP().double(), spec)
    whole = ensemble.predict(x).outputs
    assert not torch.allclose(whole[0], whole[3])
    for chosen in ([0, 3], [5, 1], [2, 3], [1, 0, 4]):
        torch.testing.assert_close(ensemble.predict(x, members=chosen).outputs, whole[chosen], rtol=0, atol=1e-12)


def test_members_that_do_not_exist_are_refused():
    ensemble, x = pluribus.ensemble(NestedMLP(), DeepEnsemble(3)), vectors(2)
    for members, error, words in (
        (0, ValueError, r"members must be from 1 to 3, as many as there are, got 0"),
        (4, ValueError, "from 1 to 3"),
        ([], ValueError, "at least one member"),
        ([1, 1], ValueError, "each only once"),
        ([0, 3], IndexError, "there are members 0 to 2, got 3"),
        ([-1], ValueError, "there are members 0 to 2"),
        ([0.5], TypeError, "whole number"),
    ):
        with pytest.raises(error, match=words):
            ensemble.predict(x, members=members)
    with pytest.raises(ValueError, match="for more draws set its samples"):
        pluribus.ensemble(NestedMLP(), MCDropout(samples=3)).predict(x, members=4)
