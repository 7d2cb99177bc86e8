"""Attacks against closed forms, and what must hold of any of them."""

import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, MCDropout, Single, Variance
from pluribus.analysis import Attack, attack, attacks
from pluribus.analysis.attacks import compute_gradient
from pluribus.analysis.perturbation_region import PerturbationRegion
from tests.analysis.attack_examples import NORMS, linear, pixels
from tests.networks import NestedMLP, ResidualCNN


def smooth(members=3):
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()
    return pluribus.ensemble(net, DeepEnsemble(members))


# --- one step, by hand ----------------------------------------------------------------------------------------------


def slope_of_loss(weight, x, y):
    """Of −log softmax(Wx)_y: Wᵀ(p − onehot)."""
    p = torch.softmax(x @ weight.T, dim=1)
    return (p - nn.functional.one_hot(y, len(weight))) @ weight


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("through", ["prediction", "losses"])
def test_one_step_is_the_fast_sign_or_the_unit_gradient(targeted, through):
    ensemble = linear([[1.0, -2.0, 0.5], [0.3, 1.0, -1.0], [-0.7, 0.2, 0.9]])
    x, y = torch.randn(20, 3, dtype=torch.double), torch.randint(0, 3, (20,))
    slope = slope_of_loss(ensemble.net.weight.detach(), x, y) * (-1 if targeted else 1)
    options = {"iterations": 1, "targeted": targeted, "through": through}
    fast = attack(ensemble, x, y, Attack(0.1, 0.1, **options), low=-math.inf, high=math.inf)
    torch.testing.assert_close(fast.inputs, x + 0.1 * slope.sign(), rtol=0, atol=1e-14)
    unit = attack(ensemble, x, y, Attack(0.1, 0.1, norm="l2", **options), low=-math.inf, high=math.inf)
    torch.testing.assert_close(unit.inputs, x + 0.1 * slope / slope.norm(dim=1, keepdim=True), rtol=0, atol=1e-12)


def test_gradients_go_through_the_averaged_prediction_or_the_averaged_loss():
    """The first is the gradient of log (1 − p) − log p, p the members' mean: that of −log p, divided by 1 − p."""
    ensemble = smooth()
    x, y = torch.randn(10, 6, dtype=torch.double, requires_grad=True), torch.randint(0, 4, (10,))
    own = ensemble(x).softmax(2)[:, torch.arange(10), y]
    (of_mean,) = torch.autograd.grad(-own.mean(0).log().sum(), x, retain_graph=True)
    (of_losses,) = torch.autograd.grad(-own.log().mean(0).sum(), x)
    found = compute_gradient(ensemble, x, y, Attack(1, 1))
    torch.testing.assert_close(found * (1 - own.mean(0).detach()).unsqueeze(1), of_mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(compute_gradient(ensemble, x, y, Attack(1, 1, through="losses")), of_losses, rtol=0, atol=1e-12)


def test_an_overconfident_network_is_no_safer():
    """In single precision its cross-entropy and gradient are exactly zero: 1 − p is e^−1000."""
    ensemble = linear([[1000.0, 0.0], [0.0, 1000.0]]).float()
    x, y = torch.tensor([[0.95, 0.05]]), torch.tensor([0])
    for norm in NORMS:
        found = attack(ensemble, x, y, Attack(1.0, 0.25, iterations=4, norm=norm), low=0, high=1)
        assert found.final_success == 1


# --- success -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_small_steps_on_a_smooth_network_never_lower_the_loss(norm):
    """Inside a ball too large to matter, by more than 1e-9."""
    ensemble = smooth()
    x, y = torch.randn(30, 6, dtype=torch.double), torch.randint(0, 4, (30,))
    region = PerturbationRegion(x, x - 9, x + 9, torch.ones_like(x), norm, 9.0)
    spec = Attack(9.0, 0.005, norm=norm)
    losses = []
    for _ in range(40):
        losses.append(ensemble.predict(x).nll(y))
        x = region.take_step(x, compute_gradient(ensemble, x, y, spec), spec.step)
    rises = torch.stack(losses).diff(dim=0)
    assert rises.min() > -1e-9
    assert (losses[-1] - losses[0]).min() > 0.001


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("spec", [DeepEnsemble(2), MCDropout(0.3, samples=3)], ids=str)
def test_more_iterations_and_restarts_never_find_less(spec, norm):
    ensemble = pluribus.ensemble(NestedMLP(), spec)
    x, y = pixels(40, 3, 2, 2), torch.randint(0, 3, (40,))

    def found(iterations, restarts):
        step = {"epsilon": 0.2, "step": 0.05, "norm": norm}
        return attack(ensemble, x, y, Attack(**step, iterations=iterations, restarts=restarts), low=0, high=1).success

    base, longer, again = found(4, 0), found(8, 0), found(8, 2)
    assert (base.diff() >= 0).all()
    assert (longer.diff() >= 0).all()
    assert torch.equal(base, longer[:5])
    assert (again >= longer).all()


def test_restarts_escape_a_flat_start():
    """Nothing moves where ReLU is off; a random point of the ball is on the slope."""
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 2)).double()
    net[0].weight.data, net[0].bias.data = torch.tensor([[1.0]]).double(), torch.tensor([-0.01]).double()
    net[2].weight.data, net[2].bias.data = torch.tensor([[-9.0], [9.0]]).double(), torch.tensor([1.0, -1.0]).double()
    ensemble = pluribus.ensemble(net, Single())
    x, y = torch.zeros(20, 1).double(), torch.zeros(20, dtype=torch.long)
    assert attack(ensemble, x, y, Attack(0.5, 0.1), low=-1, high=1).final_success == 0
    assert attack(ensemble, x, y, Attack(0.5, 0.1, restarts=8), low=-1, high=1).final_success > 0.9


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("samples", [None, 1])
@pytest.mark.parametrize("method", [Single(), MCDropout(samples=40), DeepEnsemble(2, of=MCDropout(samples=20))], ids=str)
def test_a_target_within_reach_is_reached(method, samples, norm):
    """The largest input names the class, and any may become the largest."""
    net = nn.Linear(3, 3)
    ensemble = pluribus.ensemble(net, method)
    for name, parameter in ensemble.named_parameters():
        parameter.data = torch.zeros(3) if name.endswith("bias") else 9 * torch.eye(3)
    x = torch.rand(12, 3)
    target = (x.argmax(1) + 1) % 3
    spec = Attack(1.5, 0.15, iterations=15, norm=norm, targeted=True, samples=samples)
    found = attack(ensemble, x, target, spec, low=0, high=1)
    assert found.success[0] <= 0.2  # two close numbers may look the other way round under noise
    assert found.final_success == 1


def test_fixed_members_are_judged_alike_every_time():
    ensemble = smooth()
    x, y = torch.randn(25, 6, dtype=torch.double), torch.randint(0, 4, (25,))
    found = attack(ensemble, x, y, Attack(0.4, 0.1, iterations=6, restarts=1), low=-9, high=9)
    p = ensemble.predict(found.inputs)
    assert found.final_success == found.success[-1] == (p.labels != y).double().mean()
    assert found.final_entropy == pytest.approx(p.entropy.mean().item())
    assert found.entropy[-1].item() == pytest.approx(found.final_entropy)
    clean = ensemble.predict(x)
    assert found.path_success[0] == (clean.labels != y).double().mean()
    assert found.path_entropy[0].item() == pytest.approx(clean.entropy.mean().item())
    assert found.success.shape == found.entropy.shape == found.path_success.shape == found.path_entropy.shape == (7,)
    assert (found.success >= found.path_success).all()


# --- noise ---------------------------------------------------------------------------------------------------------------


class Shimmering(nn.Module):
    """A linear classifier of the sum of its inputs, under a ripple: low, but so steep that it hides the slope beneath.

    With random signs s on its weights, the slope in x_i is 1 + 60 cos(2000 Σ s_i x_i) s_i: nearly all sign, on average 1.
    """

    def __init__(self, inputs=16):
        super().__init__()
        self.ripple = nn.Linear(inputs, 1, bias=False)

    def forward(self, x):
        margin = x.sum(1, keepdim=True) + 60 * torch.sin(2000 * self.ripple(x)) / 2000
        return torch.cat([margin, -margin], dim=1)


def shimmering(samples):
    ensemble = pluribus.ensemble(Shimmering(), Variance(noise="bernoulli", include="ripple", samples=samples))
    nn.init.ones_(ensemble.net.ripple.sigma)
    return ensemble


def test_averaging_finds_the_slope_that_noise_hides():
    """One draw's gradient is a coin flip for every coordinate; the average of 2,048 has the right sign in nearly all.

    The margin is ½ of what the ball can take away. A walk of coin flips takes away a fifth at most times: it fails.
    """
    ensemble = shimmering(samples=50)
    x = 0.05 + 0.01 * (torch.rand(10, 16) - 0.5)
    y = torch.zeros(10, dtype=torch.long)
    step = {"epsilon": 0.1, "step": 0.02, "iterations": 6}
    for through in ("prediction", "losses"):
        hidden = attack(ensemble, x, y, Attack(**step, samples=1, through=through), low=-1, high=1)
        averaged = attack(ensemble, x, y, Attack(**step, samples=2048, through=through), low=-1, high=1, batch_size=1)
        assert hidden.success[-1] <= 0.1
        assert averaged.final_success >= 0.9


def test_the_number_of_draws_is_that_of_the_attack_for_gradients_and_of_the_ensemble_for_verdicts(monkeypatch):
    ensemble = pluribus.ensemble(NestedMLP(), DeepEnsemble(2, of=MCDropout(samples=7)))
    seen = []
    forward = type(ensemble).forward

    def watched(self, x):
        answer = forward(self, x)
        seen.append((len(answer), torch.is_grad_enabled()))
        return answer

    monkeypatch.setattr(type(ensemble), "forward", watched)
    attack(ensemble, pixels(3, 3, 2, 2), torch.tensor([0, 1, 2]), Attack(0.1, 0.1, 2, samples=3), low=0, high=1)
    assert {count for count, graded in seen if graded} == {6}
    assert {count for count, graded in seen if not graded} == {14}
    assert ensemble.samples == 7


def test_it_leaves_no_trace():
    ensemble = pluribus.ensemble(ResidualCNN(), MCDropout(samples=4))
    ensemble.train()
    ensemble.net.blocks[0].eval()
    modes = [part.training for part in ensemble.modules()]
    weights = {name: value.clone() for name, value in ensemble.state_dict().items()}
    x, y = pixels(6, 3, 6, 6), torch.randint(0, 3, (6,))
    before, state = x.clone(), torch.get_rng_state()
    with torch.no_grad():  # gradients are its own affair
        first = attack(ensemble, x, y, Attack(0.1, 0.05, 3, restarts=1), low=0, high=1, seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(x, before)
    assert not x.requires_grad
    assert not first.inputs.requires_grad
    assert [part.training for part in ensemble.modules()] == modes
    assert all(parameter.grad is None for parameter in ensemble.parameters())
    assert all(torch.equal(value, weights[name]) for name, value in ensemble.state_dict().items())
    torch.rand(3)
    again = attack(ensemble, x, y, Attack(0.1, 0.05, 3, restarts=1), low=0, high=1, seed=5)
    other = attack(ensemble, x, y, Attack(0.1, 0.05, 3, restarts=1), low=0, high=1, seed=6)
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.entropy, again.entropy)
    assert not torch.equal(first.inputs, other.inputs)


def test_every_draw_has_a_seed_of_its_own(monkeypatch):
    """No verdict sees the noise that made a gradient, or that of another verdict; no part of the rows that of another."""
    seeds = []
    monkeypatch.setattr(attacks, "set_seed", seeds.append)
    ensemble = pluribus.ensemble(NestedMLP(), MCDropout(samples=4))
    spec = Attack(0.1, 0.1, iterations=3, restarts=2)
    attack(ensemble, pixels(4, 3, 2, 2), torch.tensor([0, 1, 2, 0]), spec, low=0, high=1, batch_size=2)
    assert len(seeds) == 2 * (3 * (1 + 4 + 3) + 1)  # parts · (runs · (start, verdicts, gradients), last verdict)
    assert len(set(seeds)) == len(seeds)


def test_rows_are_attacked_in_parts_of_a_bounded_size(monkeypatch):
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble(4))
    x, y = pixels(600, 3, 2, 2), torch.randint(0, 3, (600,))
    largest = 0
    forward = type(ensemble).forward

    def watched(self, x):
        nonlocal largest
        largest = max(largest, len(x) * 4) if torch.is_grad_enabled() else largest
        return forward(self, x)

    monkeypatch.setattr(type(ensemble), "forward", watched)
    spec = Attack(0.1, 0.05, 3)
    whole = attack(ensemble, x, y, spec, low=0, high=1, batch_size=600)
    largest = 0
    parts = attack(ensemble, x, y, spec, low=torch.zeros(600, 1, 1, 1), high=1)
    assert largest == 1024
    torch.testing.assert_close(parts.inputs, whole.inputs)
    torch.testing.assert_close(parts.success, whole.success)


# --- wrong arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": -1}, "epsilon must be at least 0"),
        ({"epsilon": None, "restarts": 1}, "give epsilon"),
        ({"step": 0}, "step must be positive"),
        ({"iterations": -1}, "iterations must be at least 0"),
        ({"norm": "l1"}, "norm must be one of 'linf', 'l2'"),
        ({"samples": 0}, "a gradient needs a draw"),
        ({"through": "logits"}, "through must be one of"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Attack(**{"epsilon": 0.1, "step": 0.1} | options)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"x": torch.zeros(2, 3, 2, 2, dtype=torch.long)}, "a tensor of floats"),
        ({"x": torch.zeros(0, 3, 2, 2)}, "at least one row"),
        ({"x": torch.full((2, 3, 2, 2), 2.0)}, "from low to high"),
        ({"x": torch.full((2, 3, 2, 2), math.nan)}, "from low to high"),
        ({"y": torch.zeros(3, dtype=torch.long)}, "a class for each of 2 rows"),
        ({"y": torch.tensor([0, 3])}, "classes from 0 to 2"),
        ({"low": torch.zeros(4)}, "low must broadcast"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused(changed, said):
    given = {"x": pixels(2, 3, 2, 2), "y": torch.tensor([0, 1]), "low": 0, "high": 1} | changed
    with pytest.raises((ValueError, TypeError), match=said):
        attack(pluribus.ensemble(NestedMLP(), Single()), given.pop("x"), given.pop("y"), Attack(0.1, 0.1), **given)


def test_a_regression_has_nothing_to_be_wrong_about():
    ensemble = pluribus.ensemble(NestedMLP(1), Single(), task="regression")
    with pytest.raises(ValueError, match="got one for regression"):
        attack(ensemble, pixels(2, 3, 2, 2), torch.tensor([0, 1]), Attack(0.1, 0.1), low=0, high=1)
