import pytest
import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble
from pluribus.core.errors import ConversionError
from pluribus.core.heads import OwnWeights
from pluribus.methods import batch_ensemble
from pluribus.methods.batch_ensemble import Fused
from tests.networks import Backwards, NestedMLP, ResidualCNN, images, vectors

from .test_inner import LAYERS


@pytest.mark.parametrize("kind", LAYERS)
def test_a_materialised_member_equals_its_plain_layer(kind):
    make, shape = LAYERS[kind]
    ensemble = pluribus.ensemble(make().double(), BatchEnsemble(members=3)).eval()
    layer = ensemble.net
    with torch.no_grad():
        if layer.biases is not None:
            layer.biases.add_(torch.randn_like(layer.biases))
    x = torch.randn(*shape, dtype=torch.double)
    answers = ensemble(x)
    for index in range(3):
        torch.testing.assert_close(ensemble.member(index)(x), answers[index], rtol=0, atol=1e-12)


def test_a_members_weight_is_the_rank_one_scaling_of_the_shared_one():
    layer = pluribus.ensemble(nn.Linear(4, 3).double(), BatchEnsemble(members=2)).net
    expected = layer.shared * torch.outer(layer.s[1], layer.r[1])  # W ∘ (s rᵀ), W [O, I]
    torch.testing.assert_close(layer.to_plain(1).weight, expected.detach())


def test_factors_start_as_asked():
    wide = nn.Linear(4000, 4000, bias=False)
    normal = pluribus.ensemble(wide, BatchEnsemble(2, spread=0.5)).net
    assert (normal.s.std() / normal.s.mean()).item() == pytest.approx(0.5, abs=0.03)
    assert normal.r.square().mean().item() == pytest.approx(1, abs=0.05)
    sign = pluribus.ensemble(wide, BatchEnsemble(2, init="sign")).net
    assert sorted(sign.r.unique().tolist()) == [-1, 1]


def test_ones_keep_the_networks_predictions_and_split_batches_part_them():
    net = NestedMLP().double().eval()
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=3, init="ones", batches="split")).eval()
    x = vectors(6, torch.double)
    torch.testing.assert_close(ensemble(x), net(x).expand(3, 6, 3), rtol=0, atol=1e-10)
    ensemble.train().loss(x, torch.arange(6) % 3).backward()
    gradients = ensemble.net.head.s.grad
    assert not torch.allclose(gradients[0], gradients[1])


def test_members_that_would_never_part_are_refused():
    with pytest.raises(ValueError, match="never part"):
        BatchEnsemble(init="ones")
    with pytest.raises(ValueError, match="last names the layer of which members have their own"):
        BatchEnsemble(last="head")
    with pytest.raises(ValueError, match="spread must be positive and finite, got 0"):
        BatchEnsemble(spread=0)
    with pytest.raises(TypeError, match="spread must be a number, got 'a'"):
        BatchEnsemble(spread="a")


def test_members_with_heads_of_their_own_differ_in_the_signs_of_the_inputs_alone():
    """A member is the base network on inputs with other signs, with a last layer of its own at the scale of the network's."""
    net = NestedMLP(outputs=400).double().eval()
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=3, heads="own", init="first-sign")).eval()
    first, last = ensemble.net.stem[1], ensemble.net.head
    assert sorted(first.r.unique().tolist()) == [-1, 1]
    assert not torch.equal(first.r[0], first.r[1])
    ones = [first.s, *(factor for block in ensemble.net.body for factor in (block[0].r, block[0].s))]
    assert all(bool((factor == 1).all()) for factor in ones)
    assert last.weights.shape == (3, 400, 16)
    for member in last.weights:
        assert member.std().item() == pytest.approx(net.head.weight.std().item(), rel=0.05)
    assert not torch.equal(last.weights[0], last.weights[1])
    x = vectors(6, torch.double)
    answers = ensemble(x)
    with torch.no_grad():
        for index in range(3):
            hidden = net.stem((x.flatten(1) * first.r[index]).view_as(x))
            for block in net.body:
                hidden = block(hidden)
            expected = hidden @ last.weights[index].T + last.biases[index]
            torch.testing.assert_close(answers[index], expected, rtol=0, atol=1e-12)


def test_equal_factors_part_by_heads_of_their_own():
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble(members=2, init="ones", heads="own"))
    ensemble.loss(vectors(6), torch.arange(6) % 3).backward()
    gradient = ensemble.net.stem[1].r.grad
    assert not torch.allclose(gradient[0], gradient[1])


def test_the_layer_of_ones_own_is_the_last_that_runs():
    net = Backwards()  # its head is registered first
    by_registration = pluribus.ensemble(net, BatchEnsemble(members=2, heads="own"))
    with pytest.raises(ConversionError, match="took body for the last layer, but head runs last"):
        by_registration(torch.randn(5, 4))
    named = pluribus.ensemble(net, BatchEnsemble(members=2, heads="own", last="head"))
    assert isinstance(named.net.head, OwnWeights)
    assert named(torch.randn(5, 4)).shape == (2, 5, 3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 9])
def test_split_batches_give_every_row_to_some_member(size):
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble(members=3, batches="split"))
    x, y = torch.arange(float(size)).view(size, 1, 1, 1).expand(size, 3, 2, 2), torch.arange(size)
    views, targets = ensemble.deal(x, y)
    each = -(-size // 3)
    assert views.batch.shape[:2] == targets.shape == (3, each)
    assert torch.equal(views.batch[..., 0, 0, 0].long(), targets)
    assert set(targets.flatten().tolist()) == set(range(size))
    assert ensemble(views).shape == (3, each, 3)


def test_dealt_rows_reach_their_own_member():
    ensemble = pluribus.ensemble(ResidualCNN().double(), BatchEnsemble(members=3, batches="split")).eval()
    x = images(6, torch.double)
    views, _ = ensemble.deal(x, torch.zeros(6))
    answers = ensemble(views)
    for index in range(3):
        torch.testing.assert_close(answers[index], ensemble.member(index)(x[2 * index : 2 * index + 2]), rtol=0, atol=1e-10)


def test_tiled_batches_are_averaged_over():
    ensemble = pluribus.ensemble(NestedMLP().double(), BatchEnsemble(members=3)).eval()
    x, y = vectors(6, torch.double), torch.arange(6) % 3
    out = ensemble(x)
    expected = nn.functional.cross_entropy(out.flatten(0, 1), y.repeat(3))
    torch.testing.assert_close(ensemble.loss(x, y), expected)


def test_batchnorm_is_shared_or_own():
    x = images(8)
    shared = pluribus.ensemble(ResidualCNN(), BatchEnsemble(members=3)).train()
    own = pluribus.ensemble(ResidualCNN(), BatchEnsemble(members=3, batchnorm="own")).train()
    shared(x), own(x)
    assert type(shared.net.stem[1]) is nn.BatchNorm2d
    means = torch.stack([copy.running_mean for copy in own.net.stem[1].copies])
    assert not torch.allclose(means[0], means[1])


def test_shared_batchnorm_normalises_over_all_members_together():
    """With members in the batch axis, training statistics are those of all members: the mean over them is normal, not each."""
    net = nn.Sequential(nn.Linear(4, 5, bias=False), nn.BatchNorm1d(5, affine=False), nn.Linear(5, 2))
    x = torch.randn(64, 4)
    shared = pluribus.ensemble(net, BatchEnsemble(members=3, include="0")).train()
    seen = []
    shared(x)
    shared.net[1].register_forward_hook(lambda module, args, output: seen.append(output.detach()))
    shared(x)
    assert seen[0].shape == (3 * 64, 5)
    assert seen[0].var(0, correction=0).sub(1).abs().max() < 1e-3
    assert seen[0].view(3, 64, 5).var(1).sub(1).abs().max() > 0.05


def test_factors_are_not_decayed():
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble())
    _, spared = ensemble.param_groups()
    names = {name for name, p in ensemble.named_parameters() if any(p is q for q in spared["params"])}
    assert names == {name for name, _ in ensemble.named_parameters() if name.endswith((".r", ".s"))}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(6, 5), (3, 2, 5)])
@pytest.mark.parametrize("cache", [1, 65, 2**18], ids=["one at a time", "two", "all"])
def test_the_fused_layer_is_the_plain_one_forward_and_backward(shared, bias, shape, cache, monkeypatch):
    """The same numbers and gradients as factors on activations, which autograd takes apart by itself; and second gradients."""
    monkeypatch.setattr(batch_ensemble, "CACHE", cache)
    members, outputs = 3, 4
    x = torch.randn(1 if shared else members, *shape, dtype=torch.double, requires_grad=True)
    weight, r, s, b = (
        torch.randn(*size, dtype=torch.double, requires_grad=True)
        for size in ((outputs, 5), (members, 5), (members, outputs), (members, outputs))
    )
    given = [x, weight, r, s, *([b] if bias else [])]

    def fused(x, weight, r, s, b=None):
        return Fused.apply(x.flatten(1, -2), weight, r, s, b).unflatten(1, shape[:-1])

    def plain(x, weight, r, s, b=None):
        lift = lambda vectors: vectors.view(members, *(1,) * (len(shape) - 1), -1)  # noqa: E731
        y = ((x * lift(r)) @ weight.mT) * lift(s)
        return y if b is None else y + lift(b)

    torch.testing.assert_close(fused(*given), plain(*given), rtol=0, atol=1e-12)
    towards = torch.randn(members, *shape[:-1], outputs, dtype=torch.double)
    ours, theirs = (torch.autograd.grad((layer(*given) * towards).sum(), given) for layer in (fused, plain))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-12)
    assert torch.autograd.gradgradcheck(fused, given, fast_mode=True)


def test_a_member_alone_and_all_together_answer_the_same_in_every_form():
    """Linear layers by `Fused` and convolutions by factors on activations, against each member's plain weights."""
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=3)).eval()
    x = torch.randn(40, 2, 6, 6, dtype=torch.double)
    together = ensemble(x)
    assert not ensemble.executor.runs_apart(ensemble, ensemble.executor.plan, len(x))
    for index in range(3):
        torch.testing.assert_close(
            together[index], ensemble.executor.run_alone(ensemble, x, index, ensemble.executor.plan), rtol=0, atol=1e-12
        )
        torch.testing.assert_close(together[index], ensemble.member(index)(x), rtol=0, atol=1e-12)
