"""Members are asked one after the other, until a row's answer is sure enough."""

import itertools

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, MCDropout, Mixture, Multihead, Single, TreeNet, Unsupported, Variance
from pluribus.core.flop_counting import FlopCounter
from tests.networks import NestedMLP, ResidualCNN, images, vectors

SPECS = [BatchEnsemble(4, spread=0.5), Mixture(4, parameters=2.0), DeepEnsemble(4), DeepEnsemble(4, stacked=True), TreeNet(4)]


# A row whose confidence is the threshold itself would stop or not by rounding: thresholds are a little above a median.


def make(spec: pluribus.Spec, network: nn.Module | None = None, **options) -> pluribus.Ensemble:
    """In double precision, with members whose confidences are neither all low nor all high."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble((network or NestedMLP()).double(), spec, **options)
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter *= 1.5
    return ensemble


def average_first_members(ensemble: pluribus.Ensemble, x: torch.Tensor, until: float, numbers) -> tuple[torch.Tensor, ...]:
    """By definition: probabilities of all members, and for each row the first mean that is sure."""
    members = ensemble.predict(x).members[list(numbers)]
    means = members.cumsum(0) / torch.arange(1, len(members) + 1).view(-1, 1, 1)
    used = torch.tensor(
        [next((k for k in range(1, len(means)) if means[k - 1, b].max() >= until), len(means)) for b in range(len(x))]
    )
    return used, means[used - 1, torch.arange(len(x))]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_answer_of_a_row_is_the_mean_over_its_first_members(spec):
    ensemble, x = make(spec), vectors(40, torch.double) * 2
    until = ensemble.predict(x, members=2).confidence.median().item() + 1e-6
    used, probs = average_first_members(ensemble, x, until, range(4))
    p = ensemble.predict(x, until=until)
    assert torch.equal(p.used, used)
    assert len(used.unique()) > 1
    torch.testing.assert_close(p.probs, probs, rtol=0, atol=1e-12)
    for count in used.unique().tolist():
        rows = used == count
        first = ensemble.predict(x[rows], members=count)
        for name in ("entropy", "mutual_information", "expected_entropy", "disagreement"):
            torch.testing.assert_close(getattr(p, name)[rows], getattr(first, name), rtol=0, atol=1e-12)
    assert p.count == 4
    if not isinstance(spec, (Mixture, TreeNet)):  # whose members share work, which is repeated
        assert p.saved == pytest.approx(1 - used.double().mean().item() / 4)


def test_members_may_be_asked_in_another_order_and_loaders_give_all_rows():
    ensemble, x = make(DeepEnsemble(4)), vectors(23, torch.double) * 2
    until = ensemble.predict(x, members=[3, 1]).confidence.median().item() + 1e-6
    used, probs = average_first_members(ensemble, x, until, [3, 1, 0])
    loader = DataLoader(TensorDataset(x, torch.zeros(23)), batch_size=5)
    for rows in (x, loader):
        p = ensemble.predict(rows, batch_size=3, until=until, members=[3, 1, 0])
        assert torch.equal(p.used, used)
        torch.testing.assert_close(p.probs, probs, rtol=0, atol=1e-12)
    assert len(ensemble.predict(x[:0], until=0.9)) == 0


@pytest.mark.parametrize("spec", [DeepEnsemble(4), BatchEnsemble(4, spread=0.5), TreeNet(4, split="head")], ids=str)
def test_the_share_of_passes_that_is_saved_is_that_of_flops(spec):
    network, x = (
        (ResidualCNN(), images(12, torch.double)) if isinstance(spec, BatchEnsemble) else (None, vectors(40, torch.double))
    )
    ensemble = make(spec, network)
    if isinstance(spec, TreeNet):  # everything but the last layer is shared
        with pytest.raises(Unsupported, match=r"all 4 members together take 1\.\d+ times the work of one"):
            ensemble.predict(x, until=0.9)
        return
    until = ensemble.predict(x, members=2).confidence.median().item() + 1e-6
    ensemble.predict(x, until=until)
    flops = []
    for options in ({}, {"until": until}):
        with FlopCounter() as counter:
            p = ensemble.predict(x, **options)
        flops.append(counter.get_total_flops())
    assert 0 < p.saved < 1
    assert p.saved == pytest.approx(1 - flops[1] / flops[0], abs=1e-3)


def test_work_that_members_share_is_counted_as_often_as_it_is_done():
    """One member alone is 1 pass, of which the trunk is t; all four together are t + 4 (1 − t)."""
    net = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    ensemble, x = make(TreeNet(4, split="1"), net), torch.randn(10, 8, dtype=torch.double)
    assert ensemble.predict(x, until=1e-6).saved == pytest.approx(1 - 1 / (1 / 3 + 4 * 2 / 3))
    assert ensemble.predict(x, until=1.0).saved == pytest.approx(1 - 4 / (1 / 3 + 4 * 2 / 3)), "the trunk ran four times"


@pytest.mark.parametrize("spec", [MIMO(3), Multihead(3), Single()], ids=str)
def test_where_nothing_can_be_saved_it_is_refused_with_the_reason(spec):
    with pytest.raises(Unsupported, match=r"has no early answer: .*; call predict"):
        make(spec).predict(vectors(3, torch.double), until=0.9)


def test_parts_whose_members_share_their_work_are_asked_part_by_part():
    ensemble, x = make(DeepEnsemble(3, of=MIMO(2))), vectors(30, torch.double) * 2
    until = ensemble.predict(x, members=2).confidence.median().item() + 1e-6
    p = ensemble.predict(x, until=until)
    assert set(p.used.tolist()) <= {2, 4, 6}
    assert p.saved == pytest.approx(1 - p.used.double().mean().item() / 6)


def test_draws_are_asked_one_by_one():
    ensemble, x = make(Variance(samples=8, include="*")), vectors(20, torch.double)
    seen = []
    ensemble.predict(x, until=0.5)
    ensemble.net.head.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    p = ensemble.predict(x, until=0.8)
    assert sum(seen) == p.used.sum()
    assert seen[0] == 20
    assert all(after <= before for before, after in itertools.pairwise(seen))
    assert (p.confidence[p.used < 8] >= 0.8).all()


def test_a_segmentation_stops_when_its_least_sure_place_is_sure():
    ensemble = make(DeepEnsemble(3), nn.Conv2d(3, 4, 1))
    x = images(6, torch.double)
    p = ensemble.predict(x, until=0.5)
    assert p.probs.shape == (6, 4, 6, 6)
    assert (p.confidence.flatten(1).amin(1)[p.used < 3] >= 0.5).all()


def test_a_threshold_must_be_a_probability_and_the_task_a_classification():
    ensemble, x = make(DeepEnsemble(3)), vectors(2, torch.double)
    for until in (0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="until must be"):
            ensemble.predict(x, until=until)
    with pytest.raises(ValueError, match="this is a regression"):
        make(DeepEnsemble(3), task="regression").predict(x, until=0.9)
    with pytest.raises(Unsupported, match="one member answers"):
        ensemble.predict(x, until=0.9, members=1)


def test_a_row_without_a_finite_answer_asks_all_members():
    ensemble, x = make(DeepEnsemble(3)), vectors(4, torch.double)
    x[1] = torch.nan
    p = ensemble.predict(x, until=0.34)
    assert p.used.tolist() == [1, 3, 1, 1]
    assert p.is_finite.tolist() == [True, False, True, True]


def test_a_measurement_of_shared_work_uses_up_no_random_numbers():
    draws = []
    for first in (False, True):
        ensemble, x = make(MCDropout(samples=3, include="body.0.0")), vectors(5, torch.double)
        ensemble.predict(x)
        if first:
            ensemble.executor.measure_common_work(ensemble.eval())
        torch.manual_seed(1)
        draws.append(ensemble.predict(x, until=1.0).probs)
    assert torch.equal(*draws)
