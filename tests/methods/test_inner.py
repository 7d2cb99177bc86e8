"""The identities that make an inner ensemble as cheap as one layer."""

import copy

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

import pluribus
from pluribus import Inner
from pluribus.analysis import compute_copy_variance
from pluribus.core.affine import AFFINE
from pluribus.core.errors import Unsupported
from pluribus.methods.inner import Averaged, Lean

from ..networks import ResidualCNN
from .inner_equivalents import EQUIVALENTS, train_residual_network

LAYERS = {
    "linear": (lambda: nn.Linear(6, 4), (5, 6)),
    "linear on sequences": (lambda: nn.Linear(6, 4), (5, 3, 6)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1), (5, 4, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, bias=False), (5, 4, 9, 9)),
    "conv2d, groups": (lambda: nn.Conv2d(4, 6, 3, groups=2, padding="same", padding_mode="circular"), (5, 4, 7, 7)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (3, 2, 4, 4, 4)),
    "transposed 1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), (5, 4, 5)),
    "transposed 2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, groups=2), (5, 4, 5, 5)),
    "transposed 3d": (lambda: nn.ConvTranspose3d(2, 3, 2), (3, 2, 3, 3, 3)),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_the_fused_layer_is_the_average_of_separate_ones_forward_and_backward(kind):
    make, shape = LAYERS[kind]
    fused = pluribus.ensemble(make().double(), Inner(copies=3, include="*"))
    inner = fused.net
    assert isinstance(inner, Averaged)
    separate = [make().double() for _ in range(3)]
    for index, layer in enumerate(separate):
        with torch.no_grad():
            layer.weight.copy_(inner.weights[index])
            if layer.bias is not None:
                layer.bias.copy_(inner.biases[index])
    x = torch.randn(*shape, dtype=torch.double, requires_grad=True)
    z = x.detach().clone().requires_grad_()
    y, average = fused(x)[0], sum(layer(z) for layer in separate) / 3
    torch.testing.assert_close(y, average, rtol=0, atol=1e-12)
    towards = torch.randn_like(y)
    (y * towards).sum().backward()
    (average * towards).sum().backward()
    torch.testing.assert_close(x.grad, z.grad, rtol=0, atol=1e-12)
    for index, layer in enumerate(separate):
        torch.testing.assert_close(inner.weights.grad[index], layer.weight.grad, rtol=0, atol=1e-12)
        if layer.bias is not None:
            torch.testing.assert_close(inner.biases.grad[index], layer.bias.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
def test_under_sgd_it_is_the_base_layer_at_a_smaller_rate_and_a_larger_decay(nesterov):
    """w̄ follows the base network trained with lr/m and m·wd, step for step; deviations only shrink together."""
    copies, lr, decay = 4, 0.2, 1e-2
    base = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).double()
    ensemble = pluribus.ensemble(base, Inner(copies=copies, include="*"))
    start = [m.weights.detach() - m.weights.detach().mean(0) for m in ensemble.modules() if isinstance(m, Averaged)]
    options = {"momentum": 0.9, "nesterov": nesterov}
    ours = torch.optim.SGD(ensemble.param_groups(), lr=lr, weight_decay=decay, **options)
    theirs = torch.optim.SGD(base.parameters(), lr=lr / copies, weight_decay=copies * decay, **options)
    x, y = torch.randn(16, 2, 6, 6, dtype=torch.double), torch.randint(0, 3, (16,))
    for step in range(100):
        for optimizer in (ours, theirs):
            for group in optimizer.param_groups:
                group["lr"] *= 0.98 if step % 10 == 9 else 1  # a schedule changes nothing
        for optimizer, loss in (
            (ours, ensemble.loss(x, y)),
            (theirs, nn.functional.cross_entropy(base(x), y)),
        ):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for name, parameter in base.named_parameters():
        ours_now = dict(ensemble.member(0).named_parameters())[name]
        torch.testing.assert_close(ours_now, parameter, rtol=0, atol=1e-10)
    layers = [m for m in ensemble.modules() if isinstance(m, Averaged)]
    for layer, before in zip(layers, start, strict=True):
        now = layer.weights.detach() - layer.weights.detach().mean(0)
        factor = (now * before).sum() / before.square().sum()
        torch.testing.assert_close(now, factor * before, rtol=0, atol=1e-10)
        assert 0 < factor < 1


@pytest.mark.parametrize("optimiser", ["SGD", "Adam", pytest.param("AdamW", marks=pytest.mark.slow)])
def test_with_batchnorm_and_residuals_it_is_the_base_network_at_other_settings(optimiser):
    """SGD: lr/m and m·wd on the converted layers; Adam and AdamW: m·ε there. Other layers keep their settings."""
    copies, make = 4, EQUIVALENTS[optimiser]
    base = ResidualCNN(blocks=2).double().train()
    start = copy.deepcopy(base.state_dict())
    ensemble = pluribus.ensemble(base, Inner(copies=copies)).train()
    converted = [change.name for change in ensemble.conversion.changes]
    own = [name for name, _ in base.named_parameters() if name.rpartition(".")[0] in converted]
    assert len(converted) == 6
    x = train_residual_network(lambda rows: ensemble(rows)[0], make([{"params": list(ensemble.parameters())}], copies, False))
    answers = {}
    for like_copies in (True, False):
        base.load_state_dict(start)
        parameters = dict(base.train().named_parameters())
        others = [value for name, value in parameters.items() if name not in own]
        groups = [{"params": [parameters[name] for name in own]}, {"params": others}]
        train_residual_network(base, make(groups, copies, like_copies))
        answers[like_copies] = base.eval()(x)
    torch.testing.assert_close(ensemble.eval()(x)[0], answers[True], rtol=0, atol=1e-8)
    torch.testing.assert_close(ensemble.fold()(x)[0], answers[True], rtol=0, atol=1e-8)
    assert (answers[False] - answers[True]).abs().max() > 1e-2, "the settings matter"


def test_the_papers_initialisation_has_the_gain_the_right_way_round():
    """Eq. 10: Var = m/(β² n). PyTorch's gain is 1/β, so for ReLU Var = 2m/n, and the mean of the copies is plain Kaiming."""
    layer = nn.Conv2d(16, 400, 5)
    fan_in = 16 * 25
    inner = pluribus.ensemble(layer, Inner(copies=4, init="paper")).net
    assert inner.weights.var().item() == pytest.approx(4 * 2 / fan_in, rel=0.02)
    assert inner.weights.mean(0).var().item() == pytest.approx(2 / fan_in, rel=0.03)
    linear = pluribus.ensemble(layer, Inner(copies=4, init="paper", nonlinearity="linear")).net
    assert linear.weights.var().item() == pytest.approx(4 / fan_in, rel=0.02)


@pytest.mark.parametrize("nonlinearity", ["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
def test_copies_start_with_the_variance_of_equation_10(nonlinearity):
    """640,000 weights: the tolerance is more than five standard errors of a variance."""
    expected = compute_copy_variance(4, 16 * 25, nn.init.calculate_gain(nonlinearity))
    for lean in (False, True):
        spec = Inner(copies=4, init="paper", nonlinearity=nonlinearity, lean=lean)
        weights, _ = pluribus.ensemble(nn.Conv2d(16, 400, 5), spec).net.copies()
        assert weights.var().item() == pytest.approx(expected, rel=0.01)


def test_keeping_a_network_gives_copies_the_variance_of_the_paper_about_it():
    layer = nn.Conv2d(16, 400, 5, bias=False)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    inner = pluribus.ensemble(layer, Inner(copies=4)).net
    torch.testing.assert_close(inner.weights.mean(0), layer.weight)
    assert inner.weights.var().item() == pytest.approx(4 * layer.weight.var().item(), rel=0.02)


def test_folding_by_inverse_variance_follows_equation_11():
    ensemble = pluribus.ensemble(nn.Linear(5, 4).double(), Inner(copies=3, fold="inverse-variance", init="paper"))
    inner, folded = ensemble.net, ensemble.fold().nets[0]
    inverse = [1 / inner.weights[i].var(correction=1) for i in range(3)]
    expected = sum(v * w for v, w in zip(inverse, inner.weights, strict=True)) / sum(inverse)
    torch.testing.assert_close(folded.weight, expected.detach(), rtol=0, atol=1e-12)
    expected = sum(v * b for v, b in zip(inverse, inner.biases, strict=True)) / sum(inverse)
    torch.testing.assert_close(folded.bias, expected.detach(), rtol=0, atol=1e-12)


def test_ien_takes_convolutions_and_ien_fc_takes_both():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    assert [c.name for c in pluribus.ensemble(net, Inner()).conversion.changes] == ["0"]
    assert [c.name for c in pluribus.ensemble(net, Inner(include="*")).conversion.changes] == ["0", "3"]
    assert [c.name for c in pluribus.ensemble(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), Inner()).conversion.changes] == [
        "0",
        "1",
    ]


def test_it_stores_m_copies_and_no_spare():
    net = nn.Conv2d(3, 4, 3)
    counted = pluribus.ensemble(net, Inner(copies=5)).describe(torch.randn(1, 3, 5, 5))
    assert counted.parameters == 5 * counted.base_parameters
    assert counted.deployed_parameters == counted.base_parameters
    assert counted.flops == counted.deployed_flops == counted.base_flops


def test_it_has_one_member():
    ensemble = pluribus.ensemble(nn.Linear(3, 2), Inner(copies=5))
    predicted = ensemble.predict(torch.randn(7, 3))
    assert ensemble.members == len(predicted.members) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [({"copies": 1}, "at least 2"), ({"init": "best"}, "one of 'keep', 'paper'"), ({"fold": "max"}, "one of 'mean'")],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Inner(**options)


def test_every_affine_type_is_covered_here():
    assert {type(make()) for make, _ in LAYERS.values()} == set(AFFINE)


OPTIMISERS = {
    "SGD": lambda groups: torch.optim.SGD(groups, lr=0.2, weight_decay=1e-2),
    "Nesterov": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "dampened": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=1e-2),
    "AdamW": lambda groups: torch.optim.AdamW(groups, lr=0.01, weight_decay=0.3),
    "Adam": lambda groups: torch.optim.Adam(groups, lr=0.01, amsgrad=True),
    "RMSprop": lambda groups: torch.optim.RMSprop(groups, lr=0.003, momentum=0.5),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("init", ["keep", "paper"])
def test_lean_is_the_trajectory_of_all_copies(optimiser, init):
    """One network stores m copies, one their mean. After 60 steps with a schedule every copy can be drawn again."""
    base = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 3)).double()
    lean = pluribus.ensemble(base, Inner(copies=4, include="*", init=init, lean=True, fold="inverse-variance"))
    full = pluribus.ensemble(base, Inner(copies=4, include="*", init=init, fold="inverse-variance"))
    pairs = [(a, b) for a, b in zip(lean.modules(), full.modules(), strict=True) if isinstance(a, Lean)]
    assert len(pairs) == 2
    for sparing, storing in pairs:
        with torch.no_grad():
            weights, biases = sparing.copies()
            storing.weights.copy_(weights)
            storing.biases.copy_(biases)
    before = [sparing.copies() for sparing, _ in pairs]
    x, y = torch.randn(16, 2, 6, 6, dtype=torch.double), torch.randint(0, 3, (16,))
    torch.testing.assert_close(lean(x), full(x), rtol=0, atol=1e-12)
    makers = [(ensemble, OPTIMISERS[optimiser](ensemble.param_groups())) for ensemble in (lean, full)]
    for step in range(60):
        for ensemble, optimizer in makers:
            for group in optimizer.param_groups:
                group["lr"] *= 0.9 if step % 10 == 9 else 1
            optimizer.zero_grad()
            ensemble.loss(x, y).backward()
            optimizer.step()
    for (sparing, storing), (start, _) in zip(pairs, before, strict=True):
        weights, biases = sparing.copies()
        torch.testing.assert_close(weights, storing.weights, rtol=0, atol=1e-9)
        torch.testing.assert_close(biases, storing.biases, rtol=0, atol=1e-9)
        assert (weights - start).abs().max() > 1e-2, "something was learnt"
    torch.testing.assert_close(lean.fold()(x), full.fold()(x), rtol=0, atol=1e-9)


def test_lean_copies_begin_as_far_apart_as_stored_ones():
    layer = nn.Conv2d(16, 400, 5)
    for init in ("keep", "paper"):
        lean, full = (pluribus.ensemble(layer, Inner(copies=4, init=init, lean=lean)).net for lean in (True, False))
        for ours, theirs in zip(lean.copies(), full.copies(), strict=True):
            assert ours.shape == theirs.shape
            assert ours.std().item() == pytest.approx(theirs.std().item(), rel=0.05)
            assert (ours - ours.mean(0)).std().item() == pytest.approx((theirs - theirs.mean(0)).std().item(), rel=0.05)


def test_lean_stores_one_weight_and_one_number_a_layer_whatever_m_is():
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3))
    counted = [pluribus.ensemble(net, Inner(copies=m, lean=True)).describe().parameters for m in (2, 64)]
    assert counted == [counted[0]] * 2
    assert counted[0] == sum(p.numel() for p in net.parameters()) + 4


def test_lean_survives_saving_with_its_copies(tmp_path):
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    lean = pluribus.ensemble(net, Inner(copies=3, lean=True))
    pluribus.save(lean, tmp_path / "lean")
    again = pluribus.load(tmp_path / "lean", nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)))
    for ours, theirs in zip(lean.net, again.net, strict=True):
        torch.testing.assert_close(ours.copies(), theirs.copies(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda groups: torch.optim.Adam(groups, weight_decay=1e-2), "cannot be trained by Adam with weight_decay=0.01"),
        (lambda groups: torch.optim.RMSprop(groups, weight_decay=1e-2), "cannot be trained by RMSprop with"),
        (lambda groups: torch.optim.Adafactor(groups), "cannot be trained by Adafactor, which is not known"),
    ],
)
def test_lean_refuses_optimisers_that_take_copies_different_ways(make, said):
    net = nn.Linear(3, 2)
    for lean in (True, False):
        ensemble = pluribus.ensemble(net, Inner(lean=lean))
        optimizer = make(ensemble.param_groups())
        if lean:
            with pytest.raises(Unsupported, match=said):
                ensemble.check_optimizer(optimizer)
        else:
            ensemble.check_optimizer(optimizer)


def test_lean_leaves_the_optimisers_of_others_alone():
    """Nothing is installed for the whole process: only `check_optimizer` looks."""
    pluribus.ensemble(nn.Linear(3, 2), Inner(lean=True))
    assert not _global_optimizer_pre_hooks


def test_fit_refuses_an_optimiser_that_is_not_exact():
    lean = pluribus.ensemble(nn.Linear(3, 2), Inner(lean=True))
    rows = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.randint(0, 2, (8,)))
    with pytest.raises(Unsupported, match="cannot be trained by Adam with weight_decay"):
        pluribus.fit(lean, rows, epochs=1, optimizer="adam", weight_decay=0.1, progress=False)


def test_coupled_decay_in_adam_really_takes_copies_different_ways():
    """Why it is refused: the mean of stored copies leaves the trajectory that one weight with their gradient has."""
    inner = pluribus.ensemble(nn.Linear(6, 4, bias=False).double(), Inner(copies=3))
    mean = nn.Parameter(inner.net.weights.detach().mean(0))
    optimizer = torch.optim.Adam([*inner.parameters(), mean], lr=0.05, weight_decay=0.1)
    x, y = torch.randn(16, 6, dtype=torch.double), torch.randint(0, 4, (16,))
    for _ in range(20):
        optimizer.zero_grad()
        inner.loss(x, y).backward()
        (nn.functional.cross_entropy(x @ mean.T, y) / 3).backward()
        optimizer.step()
    assert (inner.net.weights.mean(0) - mean).abs().max() > 1e-3


def test_lean_refuses_to_clip_by_a_norm_that_counts_copies():
    lean = pluribus.ensemble(nn.Linear(3, 2), Inner(lean=True))
    rows = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.randint(0, 2, (8,)))
    with pytest.raises(Unsupported, match="cannot be trained with gradient clipping"):
        pluribus.fit(lean, rows, epochs=1, clip=1.0, progress=False)
