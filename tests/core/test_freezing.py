"""Frozen draws: deterministic, repeatable, plain."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import DeepEnsemble, Inner, MCDropout, Unsupported, Variance, VariationalDropout
from tests.networks import NETWORKS, NestedMLP, vectors

SPECS = {
    "gaussian": Variance(samples=4),
    "uniform": Variance(noise="uniform", samples=4),
    "variational": VariationalDropout(samples=4, log_alpha=-1.0),
    "zero-mean": VariationalDropout(samples=4, log_alpha=-1.0, answer="zero-mean"),
    "dropout": MCDropout(samples=4),
    "deep": DeepEnsemble(2, of=Variance(samples=2)),
}


@pytest.fixture(params=SPECS)
def spec(request):
    return SPECS[request.param]


@pytest.fixture(params=NETWORKS)
def case(request):
    network, data = NETWORKS[request.param]
    return network().double(), data


def test_frozen_draws_repeat_and_their_members_are_plain(spec, case, tmp_path):
    net, data = case
    x = data(5, torch.double)
    ensemble = pluribus.ensemble(net, spec, example=x).eval()
    frozen = ensemble.freeze()
    answers = frozen(x)
    assert answers.shape == (4, 5, 3)
    assert torch.equal(frozen(x), answers)
    assert not torch.equal(ensemble(x), ensemble(x))  # the original goes on drawing
    assert not torch.allclose(answers[0], answers[1])
    for index in range(4):
        torch.testing.assert_close(frozen.member(index)(x), answers[index], rtol=0, atol=1e-10)
    torch.testing.assert_close(frozen.fold()(x), answers, rtol=0, atol=1e-10)
    torch.testing.assert_close(frozen(x[:2]), answers[:, :2], rtol=0, atol=1e-10)
    again = pluribus.load(pluribus.save(frozen, tmp_path / "frozen"), net).eval()
    torch.testing.assert_close(again(x), answers, rtol=0, atol=1e-12)


def test_frozen_weights_have_the_distribution_of_the_draws():
    x = torch.randn(3, 6, dtype=torch.double)
    for spec in (Variance(include="*"), VariationalDropout(parameterization="neuron", log_alpha=-1.0)):
        ensemble = pluribus.ensemble(nn.Linear(6, 4).double(), spec, example=x).eval()
        frozen = ensemble.freeze(samples=20_000)(x).detach()
        ensemble.samples = 20_000
        drawn = ensemble(x).detach()
        assert ((frozen.mean(0) - drawn.mean(0)).abs() / drawn.std(0)).max() < 8 / 20_000**0.5
        torch.testing.assert_close(frozen.var(0), drawn.var(0), rtol=0.1, atol=0)


def test_frozen_masks_have_the_rate_and_keep_whole_channels():
    x = torch.ones(2, 4000, 3)
    frozen = pluribus.ensemble(nn.Sequential(nn.Dropout1d(0.3)), MCDropout(samples=3), example=x).eval().freeze()
    answers = frozen(x)
    assert torch.equal(answers[:, 0], answers[:, 1])  # one mask for all rows
    assert (answers.amax(3) == answers.amin(3)).all()
    assert (answers == 0).double().mean().item() == pytest.approx(0.3, abs=0.03)


def test_the_mean_answer_freezes_to_the_mean():
    net = NestedMLP().double()
    x = vectors(3, torch.double)
    ensemble = pluribus.ensemble(net, VariationalDropout(answer="mean"), example=x).eval()
    torch.testing.assert_close(ensemble.freeze(samples=2)(x), net(x).expand(2, 3, 3), rtol=0, atol=1e-10)


def test_what_cannot_be_frozen_says_why():
    with pytest.raises(Unsupported, match="members are fixed already"):
        pluribus.ensemble(NestedMLP(), Inner()).freeze()
    with pytest.raises(ValueError, match="run the ensemble once"):
        pluribus.ensemble(NestedMLP(), MCDropout()).freeze()
    with pytest.raises(ValueError, match="samples must be at least 1"):
        pluribus.ensemble(NestedMLP(), MCDropout(), example=vectors(2)).freeze(samples=0)
