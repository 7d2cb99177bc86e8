"""What a process draws on its share of a batch is what one process draws on the whole batch. No processes are started here."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import MIMO, BatchEnsemble, MCDropout, Single, Variance, VariationalDropout
from pluribus.core.passes import Pass, call_in_pass
from pluribus.core.shares import Share, use_share
from pluribus.data import Part, Preparation
from pluribus.data.batches import TensorBatches
from pluribus.training.lightning_module import TrainingModule, count_least_rows, deals_rows
from pluribus.training.settings import Settings
from pluribus.training.whole_batch import WholeBatchDraws

ROWS, WORLD = 7, 2


def draw_all(call, x, rank=None):
    """What `call` draws on the whole batch, or on the share of a process."""
    torch.manual_seed(3)
    if rank is None:
        return call(x)
    with WholeBatchDraws(Share(rank, WORLD, ROWS)):
        return call(x[rank::WORLD])


DRAWING = {
    "dropout": lambda x: F.dropout(x, 0.4),
    "dropout in place": lambda x: F.dropout(x * 1.0, 0.4, inplace=True),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.4, training=True),
    "whole channels": lambda x: F.dropout2d(x, 0.4),
    "channels last": lambda x: F.dropout(x.contiguous(memory_format=torch.channels_last), 0.4),
    "transposed": lambda x: F.dropout(x.transpose(1, 3), 0.4),
    "stochastic depth": lambda x: x * torch.empty(len(x), 1, 1, 1).bernoulli_(0.5),
    "probabilities": lambda x: torch.bernoulli(x.sigmoid()),
    "noise": lambda x: x + torch.randn_like(x) * torch.rand(len(x), 1, 1, 1) + torch.normal(0.0, 1.0, x.shape),
    "classes": lambda x: torch.multinomial(x.flatten(1).exp(), 2),
    "gumbel": lambda x: F.gumbel_softmax(x.flatten(1)),
    "heads": lambda x: F.dropout(x.flatten(0, 1), 0.4).unflatten(0, (len(x), -1)),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.4),
    "time first": lambda x: F.dropout(x.flatten(2).transpose(0, 1), 0.4).transpose(0, 1),
}


@pytest.mark.parametrize("rank", range(WORLD))
@pytest.mark.parametrize("name", DRAWING)
def test_a_share_draws_the_rows_of_the_whole_batch(name, rank):
    x = torch.randn(ROWS, 5, 3, 3, dtype=torch.double)
    whole = draw_all(DRAWING[name], x)
    torch.testing.assert_close(draw_all(DRAWING[name], x, rank), whole[rank::WORLD])
    assert torch.equal(torch.rand(1), (draw_all(DRAWING[name], x), torch.rand(1))[1]), "and uses up as much randomness"


def test_members_one_after_the_other_draw_the_rows_of_the_whole_batch():
    x = torch.randn(3, ROWS, 4)
    torch.manual_seed(3)
    whole = F.dropout(x.flatten(0, 1), 0.5).unflatten(0, (3, ROWS))
    for rank in range(WORLD):
        share = Share(rank, WORLD, ROWS)
        own = x[:, rank::WORLD].flatten(0, 1)
        torch.manual_seed(3)
        with WholeBatchDraws(share):
            found = call_in_pass(Pass(3, share.own, share=share), lambda rows: F.dropout(rows, 0.5), own)
        assert torch.equal(found.unflatten(0, (3, -1)), whole[:, rank::WORLD])


@pytest.mark.parametrize(
    "spec", [MCDropout(samples=3), Variance(samples=3), VariationalDropout(samples=3)], ids=lambda s: s.name
)
@pytest.mark.parametrize("rows", [ROWS, 3])
def test_drawn_members_of_a_share_are_those_of_the_whole_batch(spec, rows):
    """Of three rows, one process has a single one, whose memory says nothing about the order of its axes."""
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(16, 8), nn.Linear(8, 3))
    ensemble = pluribus.ensemble(net, spec).double()
    x = torch.randn(rows, 2, 6, 6, dtype=torch.double)
    for mode in (ensemble.train, ensemble.eval):
        mode()
        ensemble(x)  # finds the plan
        torch.manual_seed(3)
        whole = ensemble(ensemble.executor.lay_out(x))
        for rank in range(WORLD):
            torch.manual_seed(3)
            with use_share(Share(rank, WORLD, rows)):
                torch.testing.assert_close(ensemble(ensemble.executor.lay_out(x[rank::WORLD])), whole[:, rank::WORLD])


def test_members_run_together_or_apart_as_they_would_on_the_whole_batch(monkeypatch):
    """Members that run one after the other draw in another order than members that run together."""
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, 3)), BatchEnsemble(members=2))
    x, asked = torch.randn(ROWS, 4), []
    ensemble(x)
    monkeypatch.setattr(ensemble.executor, "runs_apart", lambda ensemble, plan, rows: bool(asked.append(rows)))
    with use_share(Share(1, WORLD, ROWS)):
        ensemble(x[1::WORLD])
    assert asked == [ROWS]


# --- where it does not hold --------------------------------------------------------------------------------------------


def test_noise_of_weights_is_the_same_in_all_processes_unless_it_has_as_many_rows():
    x = torch.randn(ROWS, 5)
    for size, same in ((5, True), (4, False)):  # the first process has four rows
        alone, *each = (draw_all(lambda rows, size=size: torch.randn(size, 5), x, rank) for rank in (None, 0, 1))
        assert all(torch.equal(found, alone) for found in each) == same


def test_a_sequence_with_time_first_and_as_many_steps_as_own_rows_gets_other_masks():
    x = torch.randn(ROWS, 4, 6)
    drop = lambda rows: F.dropout(rows.transpose(0, 1).contiguous(), 0.5).transpose(0, 1)  # noqa: E731
    assert not torch.equal(draw_all(drop, x, 0), draw_all(drop, x)[0::WORLD])


def test_a_mean_over_the_batch_is_that_of_the_own_rows():
    x = torch.randn(ROWS, 5)
    center = lambda rows: rows - rows.mean(0)  # noqa: E731
    assert torch.equal(draw_all(center, x, 0), center(x[0::WORLD]))
    assert not torch.allclose(draw_all(center, x, 0), center(x)[0::WORLD])


def test_a_compiled_run_draws_in_each_process_for_itself(monkeypatch):
    ensemble = pluribus.ensemble(nn.Sequential(nn.Dropout(), nn.Linear(8, 8)), Single()).train()
    x, answers = torch.randn(4, 8), []
    batches = TensorBatches(Part(x, torch.zeros(4)), 4, Preparation())
    for rank in range(WORLD):
        monkeypatch.setattr(TrainingModule, "global_rank", rank)
        module = TrainingModule(ensemble, Settings(compile=True), batches, 4)
        torch.manual_seed(3)
        answers.append(module.answer(x, Share(rank, WORLD, 8)))
    assert not torch.equal(*answers)


def test_a_batch_has_rows_of_every_member_for_every_process():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    split = pluribus.ensemble(net, BatchEnsemble(members=3, batches="split"))
    assert [deals_rows(pluribus.ensemble(net, spec)) for spec in (Single(), MIMO(members=2), split.spec)] == [False, True, True]
    assert [count_least_rows(pluribus.ensemble(net, Single()), world) for world in (2, 3)] == [2, 3]
    assert [count_least_rows(split, world) for world in (2, 3)] == [4, 7]
    batches = TensorBatches(Part(torch.zeros(11, 4), torch.zeros(11)), 4, Preparation(), shuffled=True)
    assert len(batches) == 3
    batches.world, batches.least = 2, 4
    assert len(batches) == 2, "three rows are left out: two of three members would have no row in one of the processes"
