"""Ball and box, by themselves and through an attack."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble, Single
from pluribus.analysis import Attack, attack
from pluribus.analysis.perturbation_region import PerturbationRegion
from tests.analysis.attack_examples import NORMS, linear, pixels
from tests.networks import NestedMLP, ResidualCNN


def lengths(change):
    return change.double().flatten(1).norm(dim=1)


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
@pytest.mark.parametrize("norm", NORMS)
def test_ball_and_box_hold_exactly(norm, dtype):
    ensemble = pluribus.ensemble(ResidualCNN().to(dtype), BatchEnsemble(2))
    x, y = pixels(12, 3, 6, 6, dtype=dtype), torch.randint(0, 3, (12,))
    epsilon = 8 / 255 if norm == "linf" else 0.7
    found = attack(ensemble, x, y, Attack(epsilon, epsilon / 2, iterations=5, norm=norm, restarts=2), low=0, high=1)
    change = found.inputs.double() - x.double()
    assert found.inputs.min() >= 0
    assert found.inputs.max() <= 1
    assert (change.abs().max() if norm == "linf" else lengths(change).max()) <= epsilon
    assert change.abs().max() > 0.9 * epsilon if norm == "linf" else lengths(change).max() > 0.5 * epsilon
    assert found.inputs.dtype == dtype


@pytest.mark.parametrize("norm", NORMS)
def test_random_starts_and_steps_never_leave_the_region(norm):
    x = pixels(500, 3, 4, 4)
    radius = 0.037
    region = PerturbationRegion(x, torch.zeros_like(x), torch.ones_like(x), torch.ones_like(x), norm, radius)
    point = region.draw_start()
    for _ in range(5):
        assert ((point >= 0) & (point <= 1)).all()
        change = point.double() - x.double()
        assert (change.abs().max() if norm == "linf" else lengths(change).max()) <= radius
        point = region.take_step(point, torch.randn_like(x), 0.02)


def test_random_starts_fill_the_ball_evenly():
    """A share r^n of an n-ball lies within r of its centre: 4,000 points, 1.5 % is two standard deviations."""
    x = torch.zeros(4000, 3)
    wide = torch.full_like(x, 9)
    inside = lengths(PerturbationRegion(x, -wide, wide, torch.ones_like(x), "l2", 2.0).draw_start()) < 1
    assert inside.double().mean().item() == pytest.approx(1 / 8, abs=0.015)
    cube = PerturbationRegion(x, -wide, wide, torch.ones_like(x), "linf", 2.0).draw_start()
    assert (cube.abs() < 1).all(1).double().mean().item() == pytest.approx(1 / 8, abs=0.015)


@pytest.mark.parametrize("norm", NORMS)
def test_normalised_pixels_are_attacked_as_pixels(norm):
    """Bounds and scale of each channel undo the normalisation: the same attack on the network that normalises by itself."""
    mean, deviation = torch.tensor([0.2, 0.5, 0.7]).double().view(3, 1, 1), torch.tensor([0.3, 0.1, 0.8]).double().view(3, 1, 1)

    class Normalising(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net((x - mean) / deviation)

    net = ResidualCNN().double()
    inside, outside = pluribus.ensemble(Normalising(net), Single()), pluribus.ensemble(net, Single())
    x, y = pixels(6, 3, 6, 6, dtype=torch.double), torch.randint(0, 3, (6,))
    spec = Attack(0.1, 0.04, iterations=4, norm=norm)
    expected = attack(inside, x, y, spec, low=0, high=1)
    bounds = {"low": -mean / deviation, "high": (1 - mean) / deviation, "scale": 1 / deviation}
    found = attack(outside, (x - mean) / deviation, y, spec, **bounds)
    torch.testing.assert_close(found.inputs * deviation + mean, expected.inputs, rtol=0, atol=1e-9)
    torch.testing.assert_close(found.success, expected.success)


@pytest.mark.parametrize("norm", NORMS)
def test_a_ball_without_radius_changes_nothing(norm):
    x, y = pixels(5, 3, 2, 2), torch.randint(0, 3, (5,))
    found = attack(pluribus.ensemble(NestedMLP(), Single()), x, y, Attack(0, 0.1, norm=norm, restarts=1), low=0, high=1)
    assert torch.equal(found.inputs, x)
    assert (found.success == found.success[0]).all()


def test_without_a_ball_only_the_box_bounds_a_fast_sign_attack():
    ensemble = linear([[1.0, -1.0], [-1.0, 1.0]])
    x, y = torch.tensor([[3.0, 100.0]], dtype=torch.double), torch.tensor([0])
    found = attack(ensemble, x, y, Attack(None, 0.5, iterations=10, targeted=True), low=0, high=102)
    torch.testing.assert_close(found.inputs, torch.tensor([[8.0, 95.0]], dtype=torch.double))
