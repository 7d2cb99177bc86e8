"""Together or one after the other: the same answers, the same gradients, and never where it must not be."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, MCDropout, Mixture, TreeNet, Variance
from pluribus.core import execution
from pluribus.core.branching import uses_images
from tests.networks import ResidualCNN, images

SPECS = [BatchEnsemble(3), BatchEnsemble(3, batches="split"), Mixture(3), DeepEnsemble(3, stacked=True), Variance(samples=3)]


def runs_apart(ensemble: pluribus.Ensemble, x: torch.Tensor) -> bool:
    return ensemble.executor.runs_apart(ensemble, ensemble.executor.plan, len(x))


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).double()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_members_one_after_the_other_answer_and_learn_as_they_do_together(spec, monkeypatch):
    """Those that draw noise never part by choice: their first layer would run for each draw."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(plain(), spec)
    x, y = torch.randn(12, 6, dtype=torch.double), torch.arange(12) % 3
    found = []
    for least in (10**9, 1):
        monkeypatch.setattr(execution, "APART_SIZE", least)
        ensemble.zero_grad()
        torch.manual_seed(1)
        views, targets = ensemble.deal(x, y)
        outputs = ensemble(views)
        ensemble.objective(outputs, targets).backward()
        found.append([outputs.detach(), *(p.grad.clone() for p in ensemble.parameters())])
        assert runs_apart(ensemble, x) == (least == 1 and not ensemble.sampled)
    for together, apart in zip(*found, strict=True):
        torch.testing.assert_close(together, apart, rtol=0, atol=1e-12)


def test_members_that_meet_in_a_batchnorm_train_together(monkeypatch):
    x = images(4)
    monkeypatch.setattr(execution, "APART_SIZE", 1)
    shared = pluribus.ensemble(ResidualCNN(), BatchEnsemble(2))
    own = pluribus.ensemble(ResidualCNN(), BatchEnsemble(2, batchnorm="own"))
    for ensemble in (shared, own):
        ensemble(x)
    assert not runs_apart(shared.train(), x)
    assert runs_apart(own.train(), x)
    assert runs_apart(shared.eval(), x), "in evaluation a BatchNorm sees row by row"
    reference = shared(x)
    monkeypatch.setattr(execution, "APART_SIZE", 10**9)
    torch.testing.assert_close(shared(x), reference, rtol=0, atol=1e-4)


@pytest.mark.parametrize("spec", [TreeNet(2), MCDropout(samples=2)], ids=str)
def test_what_members_share_is_never_computed_twice(spec, monkeypatch):
    monkeypatch.setattr(execution, "APART_SIZE", 1)
    ensemble = pluribus.ensemble(ResidualCNN(), spec, example=images(2)).eval()
    ensemble(images(4))
    assert not runs_apart(ensemble, images(4))


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.body, self.head, self.reentrant = (
            nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8)),
            nn.Linear(8, 3),
            reentrant,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            return self.head(checkpoint(self.body, x, use_reentrant=self.reentrant))
        return self.head(self.body(x))


@pytest.mark.parametrize("reentrant", [True, False])
def test_members_stay_together_where_gradient_checkpointing_will_run_them_again(reentrant, monkeypatch):
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(Checkpointed(reentrant).double(), BatchEnsemble(3))
    x, y = torch.randn(12, 6, dtype=torch.double, requires_grad=True), torch.arange(12) % 3
    found = []
    for least in (10**9, 1):
        monkeypatch.setattr(execution, "APART_SIZE", least)
        ensemble.zero_grad()
        ensemble.loss(x, y).backward()
        found.append([p.grad.clone() for p in ensemble.parameters()])
    for together, asked in zip(*found, strict=True):
        torch.testing.assert_close(together, asked, rtol=0, atol=1e-12)


def test_an_answer_takes_fewer_rows_at_once_the_more_a_row_takes():
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 32 * 32, 10))
    ensemble = pluribus.ensemble(net, MCDropout(samples=20), example=torch.randn(2, 3, 32, 32)).eval()
    ensemble(torch.randn(2, 3, 32, 32))
    executor, rows = ensemble.executor, []
    for samples in (2, 20, 200):
        ensemble.samples = samples
        rows.append(executor.choose_chunk_rows(ensemble))
        row = executor.choose_group_size(ensemble) * executor.plan.branched_size
        assert rows[-1] * row < 4 * execution.CHUNK_SIZE + row, "the convolution is most of the work, and draws share it"
    assert rows[0] > 10 * (rows[1] - 1) > 0  # rounded up to whole rows
    assert rows[1] >= rows[2]


class Viewing(nn.Module):
    """Insists on the usual order in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4 * 4 * 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x)
        return self.head(y.view(y.shape[0], -1))


@pytest.mark.parametrize("spec", [BatchEnsemble(2), MCDropout(samples=3), DeepEnsemble(2), pluribus.MIMO(2)], ids=str)
def test_channels_come_last_where_the_network_takes_them_so(spec):
    x = images(4)
    for net, taken in ((ResidualCNN(), True), (Viewing(), False), (nn.Sequential(nn.Flatten(), nn.Linear(108, 3)), False)):
        if isinstance(spec, pluribus.MIMO) and not taken and not isinstance(net, Viewing):
            continue  # it needs two layers
        ensemble = pluribus.ensemble(net, spec, example=x[:2])
        answer = ensemble.predict(x)
        assert ensemble.executor.plan.channels_last == taken
        assert ensemble.executor.lay_out(x).is_contiguous(memory_format=torch.channels_last) == taken
        if not ensemble.sampled:
            torch.testing.assert_close(answer.outputs, ensemble.eval()(x), rtol=0, atol=1e-5)


def test_one_channel_is_left_as_it_is():
    assert not uses_images(nn.Conv2d(1, 4, 3), torch.randn(2, 1, 8, 8))
    assert uses_images(nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8))


@pytest.mark.parametrize("spec", [pluribus.MIMO(2), BatchEnsemble(2, batches="split")], ids=str)
def test_a_dealt_batch_keeps_its_channels_last(spec):
    x, y = images(6).contiguous(memory_format=torch.channels_last), torch.arange(6) % 3
    ensemble = pluribus.ensemble(ResidualCNN(), spec, example=x[:2])
    torch.manual_seed(0)
    views, targets = ensemble.deal(x, y)
    assert views.batch.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
    torch.manual_seed(0)
    usual, same = ensemble.deal(x.contiguous(), y)
    assert torch.equal(views.batch, usual.batch)
    assert torch.equal(targets, same)
    seen = []
    next(m for m in ensemble.net.modules() if isinstance(m, nn.BatchNorm2d)).register_forward_pre_hook(
        lambda _, given: seen.append(given[0])
    )
    ensemble(views)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


def test_a_second_search_for_the_branch_compares_members_that_run_together(monkeypatch):
    """One after the other they would agree with themselves, wherever they part."""
    monkeypatch.setattr(execution, "APART_SIZE", 1)
    ensemble = pluribus.ensemble(ResidualCNN(), BatchEnsemble(2)).eval()
    ensemble(images(4))
    assert runs_apart(ensemble, images(4))
    seen, asked = [], execution.Executor.runs_apart
    monkeypatch.setattr(execution.Executor, "runs_apart", lambda *args: seen.append(asked(*args)) or seen[-1])
    ensemble.executor.search(ensemble, images(4))
    assert seen[0] is False


@pytest.mark.parametrize(("stem", "repeated"), [(1, True), (64, False)])
def test_work_that_members_share_is_repeated_only_where_it_is_under_2_percent(stem, repeated, monkeypatch):
    """Of a member's FLOPs, and only where its tensors are large."""
    net = nn.Sequential(nn.Linear(6, stem), nn.ReLU(), nn.Linear(stem, 32), nn.ReLU(), nn.Linear(32, 32), nn.Linear(32, 3))
    ensemble = pluribus.ensemble(net, BatchEnsemble(3, exclude="0"), example=torch.randn(2, 6)).eval()
    x = torch.randn(8, 6)
    assert not runs_apart(ensemble, x), "small tensors"
    monkeypatch.setattr(execution, "APART_SIZE", 1)
    assert runs_apart(ensemble, x) == repeated
    calls = []
    ensemble.net[0].register_forward_hook(lambda *_: calls.append(1))
    ensemble(x)
    assert len(calls) == (3 if repeated else 1)
