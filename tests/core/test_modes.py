"""Copies in evaluation mode: whatever a network refers to its modules by, a prediction never reaches the original."""

import collections
import functools
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, Inner, MCDropout, Multihead, Single


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


Pair = collections.namedtuple("Pair", "norm other")
KEEPS = {
    "list": lambda norm: [norm],
    "dict": lambda norm: {"norm": norm},
    "ordered": lambda norm: collections.OrderedDict(norm=norm),
    "deque": lambda norm: collections.deque([norm]),
    "namedtuple": lambda norm: Pair(norm, 1),
    "method": lambda norm: norm.forward,
    "partial": lambda norm: functools.partial(type(norm).forward, norm),
}


class Keeping(nn.Module):
    """Runs its BatchNorm by a reference that it keeps in an attribute of its own."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.kept = KEEPS[kind](self.norm)

    def forward(self, x):
        kept = self.kept
        if isinstance(kept, (list, tuple, collections.deque)):
            kept = kept[0]
        elif isinstance(kept, dict):
            kept = kept["norm"]
        return self.b(kept(self.a(x)))


@pytest.mark.parametrize("kind", KEEPS)
def test_a_prediction_leaves_the_statistics_of_a_network_in_training(kind):
    ensemble = pluribus.ensemble(Keeping(kind), Multihead(3)).train()
    x = torch.randn(12, 4)
    ensemble(x)
    before = ensemble.net.norm.running_mean.clone()
    first = ensemble.predict(x).outputs
    assert torch.equal(before, ensemble.net.norm.running_mean)
    torch.testing.assert_close(first, ensemble.eval()(x))


def test_a_hook_that_is_a_method_of_the_network_belongs_to_the_copy():
    class Features(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head, self.features = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 3), None
            self.body.register_forward_hook(self.save)

        def save(self, module, args, output):
            self.features = output.detach()

        def forward(self, x):
            self.body(x)
            return self.head(self.features)

    for spec in (Single(), Multihead(3), DeepEnsemble(2, stacked=False), BatchEnsemble(2, include="head")):
        ensemble = pluribus.ensemble(Features(), spec).eval()
        for x in torch.randn(3, 12, 4):
            torch.testing.assert_close(ensemble.predict(x).outputs, ensemble(x).detach())


def test_a_compiled_ensemble_predicts_in_evaluation_mode():
    ensemble = pluribus.ensemble(mlp(), MCDropout(samples=5)).train()
    x = torch.randn(12, 4)
    ensemble(x)
    before = ensemble.net[1].running_mean.clone()
    ensemble.compile(backend="eager")
    assert ensemble.predict(x).outputs.shape == (5, 12, 3)
    assert torch.equal(before, ensemble.net[1].running_mean)


def test_a_compiled_network_can_be_part_of_an_ensemble():
    x = torch.randn(12, 4)
    ensemble = pluribus.ensemble(mlp(), Multihead(3)).eval()
    expected = ensemble(x).detach()
    ensemble.net = torch.compile(ensemble.net, backend="eager")
    torch.testing.assert_close(ensemble.predict(x).outputs, expected)


def test_new_children_and_parametrizations_are_seen():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.Sequential(), nn.Linear(8, 3)), Multihead(3)).eval()
    x = torch.randn(12, 4)
    ensemble.predict(x)
    ensemble.net[1].append(nn.Dropout(0.5))
    assert torch.equal(ensemble.predict(x).outputs, ensemble.predict(x).outputs)
    nn.utils.parametrizations.weight_norm(ensemble.net[0])
    torch.testing.assert_close(ensemble.predict(x).outputs, ensemble.eval()(x).detach())


def test_a_layer_in_training_mode_inside_keeps_nothing():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), Inner(include="0")).eval()
    ensemble.net[0].train()
    x = torch.randn(12, 4)
    before = ensemble.predict(x).outputs
    ensemble.net[0].weights.data.mul_(2)
    assert not torch.equal(before, ensemble.predict(x).outputs)


def test_an_ensemble_is_freed_at_once():
    x = torch.randn(12, 4)
    ensemble = pluribus.ensemble(mlp(), Multihead(3)).eval()
    ensemble(x)
    gc.collect()
    gc.disable()
    try:
        ensemble.predict(x)
        parameter = weakref.ref(next(ensemble.parameters()))
        del ensemble
        assert parameter() is None
    finally:
        gc.enable()


def test_layers_are_named_whichever_pass_comes_first():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), BatchEnsemble(4)).eval()
    ensemble.net = nn.Sequential(nn.Identity(), ensemble.net)
    x = torch.randn(12, 4)
    torch.testing.assert_close(ensemble.predict(x).outputs, ensemble(x).detach())


class Holding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), BatchEnsemble(2))
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.inner(x).mean(0))


@pytest.mark.parametrize("spec", [Multihead(2, last="head"), DeepEnsemble(2)], ids=str)
def test_a_network_that_holds_an_ensemble_can_be_converted(spec):
    net, x = Holding().eval(), torch.randn(12, 4)
    expected = net(x)
    torch.testing.assert_close(pluribus.ensemble(net, spec).eval()(x)[0], expected)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("spec", [MIMO(3), DeepEnsemble(2, of=MIMO(2))], ids=str)
def test_the_first_layer_of_mimo_may_be_recomputed(spec, reentrant):
    class Checkpointed(nn.Module):
        def __init__(self, recompute: bool) -> None:
            super().__init__()
            self.body, self.head = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8)), nn.Linear(8, 3)
            self.recompute = recompute

        def forward(self, x):
            recompute = self.training and self.recompute
            return self.head(checkpoint(self.body, x, use_reentrant=reentrant) if recompute else self.body(x))

    x, y = torch.randn(12, 4, dtype=torch.double, requires_grad=True), torch.arange(12) % 3
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(0)
        ensemble = pluribus.ensemble(Checkpointed(recompute).double(), spec).train()
        torch.manual_seed(1)
        ensemble.loss(x, y).backward()
        gradients.append([parameter.grad for parameter in ensemble.parameters()])
    for plain, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, recomputed)


def test_an_optional_tensor_that_appears_later_is_looked_at_anew():
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, h, mask=None):
            return h + (self.layer(h) if mask is None else self.layer(h) * mask)

    class Optional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.block, self.head = nn.Linear(4, 8), Block(), nn.Linear(8, 3)

        def forward(self, x, mask=None):
            return self.head(self.block(self.a(x), *([] if mask is None else [mask])).tanh())

    ensemble = pluribus.ensemble(Optional().double(), BatchEnsemble(3, include="block.layer")).eval()
    x, mask = torch.randn(12, 4, dtype=torch.double), torch.rand(12, 8, dtype=torch.double)
    ensemble(x)
    torch.testing.assert_close(ensemble((x, mask))[1], ensemble.member(1)(x, mask))


def test_hooks_reach_folded_networks():
    double = lambda module, args, output: output + 1  # noqa: E731
    net = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(24, 3))
    net[0].register_forward_hook(double)
    net[2].register_forward_hook(lambda module, args, output: output * torch.tensor([1.0, 2.0, 3.0]))
    rows = torch.randint(0, 10, (6, 3))
    ensemble = pluribus.ensemble(net, MIMO(2)).eval()
    torch.testing.assert_close(ensemble.fold()(rows), ensemble(rows), rtol=0, atol=1e-5)
    dropping = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    dropping[1].register_forward_hook(double)
    x = torch.randn(6, 4)
    frozen = pluribus.ensemble(dropping, MCDropout(samples=3), example=x).eval().freeze()
    torch.testing.assert_close(frozen.fold()(x), frozen(x))


def test_one_weight_has_no_variance_to_fold_by():
    ensemble = pluribus.ensemble(nn.Linear(1, 1), Inner(copies=3, fold="inverse-variance"), task="regression").eval()
    x = torch.randn(5, 1)
    torch.testing.assert_close(ensemble.fold()(x), ensemble(x))
