"""Frozen draws: what they are drawn from, and what cannot be frozen. That they repeat and are plain is in the contract."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Inner, MCDropout, Unsupported, Variance, VariationalDropout
from pluribus.core.members import MemberLayer
from tests.networks import NestedMLP, vectors


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


def test_a_layer_that_draws_must_say_how_to_fix_its_draws():
    class Jitter(MemberLayer):
        def respond(self, x):
            return x + self.draw(torch.randn, x.shape[1:], x)

    ensemble = pluribus.ensemble(NestedMLP(), MCDropout())
    ensemble.net.stem[2] = Jitter()
    ensemble(vectors(2))
    with pytest.raises(Unsupported, match="Jitter cannot be frozen"):
        ensemble.freeze()


def test_a_fixed_mask_says_when_rows_have_another_shape():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    frozen = pluribus.ensemble(net, MCDropout(samples=2), example=torch.randn(2, 5, 4)).eval().freeze()
    with pytest.raises(ValueError, match=r"fixed for rows of shape \[5, 4\], got \[7, 4\]"):
        frozen(torch.randn(2, 7, 4))
