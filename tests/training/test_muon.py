import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, Inner, Mixture, Multihead, Single
from pluribus.core.errors import Unsupported
from pluribus.training import Settings
from pluribus.training.fit import fit
from pluribus.training.muon import Muon, measure_norms, orthogonalize, separate_convolutions
from pluribus.training.optimizers import make_optimizer, separate_parameters

QUIET = {"progress": False, "seed": 0}


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)),
    )


@pytest.mark.parametrize("shape", [(6, 20), (20, 6), (5, 3, 2, 2)])
def test_the_orthogonal_factor_has_the_singular_vectors_of_the_gradient_and_values_near_one(shape):
    torch.manual_seed(1)
    gradient = torch.randn(shape, dtype=torch.double)
    left, _, right = torch.linalg.svd(gradient.flatten(1), full_matrices=False)
    inside = left.T @ orthogonalize(gradient).flatten(1) @ right.T
    values = inside.diagonal()
    torch.testing.assert_close(inside, values.diag(), atol=1e-10, rtol=0)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_members_side_by_side_are_orthogonalized_one_by_one():
    gradient = torch.randn(3, 4, 2, 3, 3, dtype=torch.double)
    whole = orthogonalize(gradient, leading=1)
    for member in range(3):
        torch.testing.assert_close(whole[member], orthogonalize(gradient[member]))


def test_two_steps_by_hand():
    """A convolution turns by a share of its norm and keeps the norm; the bias takes two steps of SGD."""
    torch.manual_seed(0)
    weight, bias = (nn.Parameter(torch.randn(shape, dtype=torch.double)) for shape in ((2, 4, 3, 3), (4,)))
    optimizer = Muon(
        [{"params": [weight], "leading": 0}, {"params": [bias], "weight_decay": 0.1}], lr=0.05, momentum=0.8, weight_decay=0.3
    )
    w, b = weight.detach().clone(), bias.detach().clone()
    norm, momentum_w, momentum_b = w.norm(), 0.0, 0.0
    for _ in range(2):
        weight.grad, bias.grad = torch.randn_like(weight), torch.randn_like(bias)
        momentum_w = 0.6 * momentum_w + weight.grad
        direction = orthogonalize(weight.grad + 0.6 * momentum_w)
        w = w - 0.05 * norm * direction / direction.norm()
        w = w * norm / w.norm()
        decayed = bias.grad + 0.1 * b
        momentum_b = 0.8 * momentum_b + decayed
        b = b - 0.05 * (decayed + 0.8 * momentum_b)
        optimizer.step()
        torch.testing.assert_close(weight.detach(), w)
        torch.testing.assert_close(bias.detach(), b)
    torch.testing.assert_close(weight.detach().norm(), norm)


def test_a_step_does_not_depend_on_the_scale_of_weights_or_gradients():
    moved = []
    for scale in (1.0, 100.0):
        torch.manual_seed(2)
        weight = nn.Parameter(scale * torch.randn(4, 3, 3, 3, dtype=torch.double))
        weight.grad = torch.randn_like(weight) / scale**2
        Muon([{"params": [weight], "leading": 0}], lr=0.1).step()
        moved.append(weight.detach() / scale)
    torch.testing.assert_close(moved[0], moved[1])


@pytest.mark.parametrize(
    ("spec", "convolutions"),
    [
        (Single(), {"net.0.weight": None, "net.3.weight": None}),
        (MIMO(members=2), {"net.0.weights": 1, "net.3.weight": None}),
        (BatchEnsemble(members=2), {"net.0.shared": None, "net.3.shared": None}),
        (Multihead(members=2), {"net.0.weight": None, "net.3.weight": None}),
        (Inner(copies=2), {"net.0.weights": 1, "net.3.weights": 1}),
        (Mixture(members=2), {}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_convolutions_of_a_method_are_found_each_with_its_axes(spec, convolutions):
    ensemble = pluribus.ensemble(network(), spec, example=torch.zeros(2, 1, 8, 8))
    groups = separate_parameters(ensemble, ensemble.param_groups(), Settings(optimizer="muon", bias_lr=2.0))
    names = {id(parameter): name for name, parameter in ensemble.named_parameters()}
    found = {names[id(p)]: group["leading"] for group in groups for p in group["params"] if group["leading"] is not None}
    assert found == {name: leading or 0 for name, leading in convolutions.items()}
    everything = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(everything) == sorted(names)
    optimizer = make_optimizer(groups, Settings(optimizer="muon", lr=0.2, bias_lr=2.0))
    faster = [group for group in optimizer.param_groups if group["lr"] == pytest.approx(0.4)]
    assert faster
    assert all(group["leading"] is None for group in faster)


def test_a_mixture_trains_by_sgd_under_the_fast_recipe():
    """Its weights are mixed from one long vector: there is no matrix to be orthogonal."""
    x, y = torch.randn(48, 1, 8, 8), torch.arange(48) % 3
    ensemble = pluribus.ensemble(network(), Mixture(members=2), example=x[:2])
    history = fit(ensemble, (x, y), epochs=20, batch_size=24, optimizer="muon", lr=0.05, **QUIET)
    assert history[-1]["loss"] < history[0]["loss"]


@pytest.mark.parametrize("spec", [Single(), MIMO(members=2), DeepEnsemble(members=2)], ids=lambda spec: spec.name)
def test_it_learns_and_convolutions_keep_their_norms(spec):
    x = torch.randn(96, 1, 8, 8)
    y = (x[:, 0, 2:6, 2:6].mean((1, 2)) > 0).long()
    ensemble = pluribus.ensemble(network(), spec, example=x[:2])
    norms = [measure_norms(p, p.dim() - 4).clone() for p in ensemble.parameters() if p.dim() > 3]
    history = fit(ensemble, (x, y), epochs=8, batch_size=24, optimizer="muon", **QUIET)
    assert history[-1]["loss"] < 0.7 * history[0]["loss"]
    after = [measure_norms(p, p.dim() - 4) for p in ensemble.parameters() if p.dim() > 3]
    torch.testing.assert_close(after, norms)


def test_a_killed_run_goes_on_exactly(tmp_path):
    x, y = torch.randn(40, 1, 8, 8), torch.arange(40) % 3
    options = {"batch_size": 10, "optimizer": "muon", "schedule": "constant", **QUIET}
    whole, rest = (pluribus.ensemble(network(), Single(), example=x[:2]) for _ in range(2))
    fit(whole, (x, y), epochs=4, **options)
    fit(rest, (x, y), epochs=2, folder=tmp_path, **options)
    fit(rest, (x, y), epochs=4, folder=tmp_path, resume=True, **options)
    for first, second in zip(whole.parameters(), rest.parameters(), strict=True):
        assert torch.equal(first, second)


def test_what_it_cannot_train_is_told():
    linear = pluribus.ensemble(nn.Linear(3, 2), Single())
    with pytest.raises(Unsupported, match="this network has none"):
        separate_convolutions(linear, linear.param_groups())
    with pytest.raises(ValueError, match="fsdp"):
        Settings(optimizer="muon", strategy="fsdp")
    lean = pluribus.ensemble(network(), Inner(copies=2, lean=True), example=torch.zeros(2, 1, 8, 8))
    with pytest.raises(Unsupported):
        fit(lean, (torch.zeros(8, 1, 8, 8), torch.zeros(8).long()), epochs=1, optimizer="muon", **QUIET)


def test_the_iteration_brings_small_singular_values_up():
    values = torch.logspace(-2.5, 0, 12, dtype=torch.double)
    found = orthogonalize(values.diag() / 1.0).diagonal()
    assert found.min() > 0.3
    assert found.max() < 1.3
    assert math.isclose(orthogonalize(torch.zeros(2, 2)).abs().max().item(), 0)
