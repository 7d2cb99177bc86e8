"""Mixup: what is mixed, how much, and from which seed."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import MIMO, Multihead, Single
from pluribus.core.seeds import derive_seed
from pluribus.data.batches import ORDER
from pluribus.training.fit import fit
from pluribus.training.lightning_module import MIXUP
from pluribus.training.mixup import draw_share, mix_rows
from tests.training.test_fit import QUIET, blobs, net


def test_a_row_is_mixed_with_one_other_and_its_target_alike():
    """Row i has its own unit vector as input and as target: the mixed batch shows λ and the permutation."""
    unit = torch.eye(6, dtype=torch.double)
    x, y = mix_rows(unit, unit.clone(), 0.7, seed=3)
    assert torch.equal(x, y)
    share = draw_share(0.7, 3)
    torch.testing.assert_close(x.sum(1), torch.ones(6, dtype=torch.double))
    torch.testing.assert_close(x.sum(0), torch.ones(6, dtype=torch.double))  # a permutation: every row is a partner once
    other = x - share * unit
    assert bool(((other - (1 - share)).abs() < 1e-12).sum(1).eq(1).all())
    assert bool((other > -1e-12).all())


def test_every_tensor_of_a_batch_is_mixed_with_the_same_rows():
    unit = torch.eye(5)
    (a, b), y = mix_rows((unit, {"b": 2 * unit.view(5, 5, 1)}), unit, 1.0, seed=0)
    assert torch.equal(a, y)
    torch.testing.assert_close(b["b"].squeeze(2), 2 * y)


@pytest.mark.parametrize("alpha", [1e-4, 0.2, 1.0, 5.0, 1e6])
def test_the_share_has_the_moments_of_beta(alpha):
    """Mean 1/2, variance 1 / (4 (2α + 1)); 4,000 draws, within five standard errors."""
    shares = torch.tensor([draw_share(alpha, seed) for seed in range(4000)], dtype=torch.double)
    variance = 1 / (4 * (2 * alpha + 1))
    assert abs(shares.mean() - 0.5) < 5 * (variance / 4000) ** 0.5
    assert bool(((shares >= 0) & (shares <= 1)).all())
    assert float((shares - 0.5).square().mean()) == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_of_a_mixed_batch_is_the_mixed_loss(smoothing):
    """λ CE(y) + (1 − λ) CE(y of the partner) on the mixed inputs, as the paper's own code has it."""
    x, y = blobs(32)
    ensemble = pluribus.ensemble(net(), Single())
    twin = pluribus.ensemble(net(), Single())
    seen: list[torch.Tensor] = []
    ensemble.net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach().clone()))
    history = fit(ensemble, (x, y), epochs=1, batch_size=32, mixup=0.5, label_smoothing=smoothing, **QUIET)
    mixed = seen[-1]
    assert not torch.equal(mixed, x)
    seed = derive_seed(0, MIXUP, 0)
    share = draw_share(0.5, seed)
    own = torch.randperm(32, generator=torch.Generator().manual_seed(derive_seed(0, ORDER, 0)))
    partner = torch.randperm(32, generator=torch.Generator().manual_seed(derive_seed(seed, 1)))
    torch.testing.assert_close(mixed, share * x[own] + (1 - share) * x[own][partner])
    output = twin(mixed)[0]
    pair = [F.cross_entropy(output, target, label_smoothing=smoothing) for target in (y[own], y[own][partner])]
    assert history[0]["loss"] == pytest.approx((share * pair[0] + (1 - share) * pair[1]).item(), rel=1e-5)


@pytest.mark.parametrize("spec", [Single(), MIMO(members=2), Multihead(members=2)], ids=str)
def test_a_run_with_mixup_is_a_function_of_its_seed(spec):
    x, y = blobs(96)
    states = []
    for seed, mixup in ((0, 0.4), (0, 0.4), (1, 0.4), (0, 0.0)):
        torch.manual_seed(0)
        ensemble = pluribus.ensemble(net(), spec)
        torch.manual_seed(len(states))  # the state of the generator has no say
        fit(ensemble, (x, y), epochs=2, batch_size=32, mixup=mixup, seed=seed, **QUIET)
        states.append(nn.utils.parameters_to_vector(ensemble.parameters()).detach())
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
    assert not torch.equal(states[0], states[3])


def test_one_logit_is_mixed_too():
    x, y = blobs(64)
    ensemble = pluribus.ensemble(net(outputs=1), Single())
    history = fit(ensemble, (x, (y > 0).long()), epochs=20, batch_size=32, lr=0.02, mixup=0.2, **QUIET)
    assert history[-1]["loss"] < history[0]["loss"]


def test_what_cannot_be_mixed_is_refused():
    x, y = blobs(32)
    with pytest.raises(ValueError, match="mixup is for a classification, and this is a regression"):
        fit(pluribus.ensemble(net(outputs=1), Single(), task="regression"), (x, x[:, 0]), epochs=1, mixup=0.2, **QUIET)
    tokens = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 3))
    data = [(torch.randint(5, (32, 3)), y)]
    with pytest.raises(ValueError, match="mixes inputs that are real numbers"):
        fit(pluribus.ensemble(tokens, Single()), data, epochs=1, mixup=0.2, **QUIET)
    with pytest.raises(ValueError, match="mixup"):
        fit(pluribus.ensemble(net(), Single()), (x, y), epochs=1, mixup=-1, **QUIET)
