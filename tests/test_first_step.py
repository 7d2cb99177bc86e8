"""One default step moves every method's weights about as far as those of a plain network, or its spec says why not."""

import copy

import pytest
import torch
from torch import Tensor, nn

import pluribus
from pluribus.core.ensemble import Ensemble
from pluribus.core.errors import Unsupported
from pluribus.core.spec import Spec, list_methods
from pluribus.training.optimizers import make_optimizer
from pluribus.training.settings import Settings

LEAST, MOST = 1 / 3, 3.0
SHAPES = {"conv": (3, 8, 8), "conv with BatchNorm": (3, 8, 8), "dense": (32,)}
KINDS = [pytest.param("conv", marks=pytest.mark.slow), "conv with BatchNorm", "dense"]
BUDGETS = {
    "blob": {"blob": True},
    "a third": {"parameters": 0.34},
    "four times": {"parameters": 4.0},
    "disjoint": {"disjoint": True, "parameters": 4.0},
}


def build(kind: str) -> nn.Module:
    torch.manual_seed(0)
    if kind == "dense":
        return nn.Sequential(
            nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )
    layers: list[nn.Module] = []
    for before, after in ((3, 8), (8, 16), (16, 16), (16, 16)):
        layers.append(nn.Conv2d(before, after, 3, padding=1, bias=kind == "conv"))
        layers += [nn.ReLU()] if kind == "conv" else [nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10))


def read_weights(ensemble: Ensemble, x: Tensor) -> dict[str, Tensor]:
    """The weights by which member 0 answers; of a method that draws noise, those of a fixed draw."""
    torch.manual_seed(7)
    if ensemble.sampled:
        ensemble = copy.deepcopy(ensemble).eval()
        ensemble(x)
        ensemble = ensemble.freeze(1)
    return {name: p.detach().clone() for name, p in ensemble.member(0).named_parameters() if p.dim() > 1}


def measure_move(spec: Spec, kind: str, optimizer: str) -> float:
    """How far one step moves the weights of member 0."""
    net = build(kind)
    x, y = torch.randn(64, *SHAPES[kind]), torch.randint(10, (64,))
    ensemble = pluribus.ensemble(net, spec).train()
    steps = make_optimizer(ensemble.param_groups(), Settings(optimizer=optimizer))
    before = read_weights(ensemble, x)
    torch.manual_seed(3)
    ensemble.loss(x, y, examples=50_000).backward()
    steps.step()
    after = read_weights(ensemble, x)
    return sum((after[name] - before[name]).square().sum() for name in after).sqrt().item()


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in list_methods() if name != "single"])
def test_a_default_step_moves_the_weights_as_it_moves_a_plain_networks(name, kind, optimizer):
    spec = Spec.registry[name]()
    if name == "maxout":
        with pytest.raises(Unsupported, match="no plain form"):  # there are no weights of a plain network to compare
            measure_move(spec, kind, optimizer)
        return
    ratio = measure_move(spec, kind, optimizer) / measure_move(pluribus.Single(), kind, optimizer)
    if optimizer in spec.other_steps:
        assert spec.other_steps[optimizer]
        least, most = {"inner": (0, 1), "mimo": (1, 9)}[name]  # for the reason that the spec gives
        assert least < ratio < most
        return
    assert LEAST < ratio < MOST, f"{name} moves {ratio:.2f} times as far as the base network"


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", list(BUDGETS))
def test_so_does_a_mixture_of_every_budget(budget, kind, optimizer):
    ratio = measure_move(pluribus.Mixture(**BUDGETS[budget]), kind, optimizer) / measure_move(
        pluribus.Single(), kind, optimizer
    )
    assert LEAST < ratio < MOST


def test_a_blob_is_trained_by_sgd_at_the_default_rate():
    """With its scale in the coefficients and unscaled gradients, the loss was NaN by step 4."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(720, 200), nn.ReLU(), nn.Linear(200, 10)
    )
    ensemble = pluribus.ensemble(net, pluribus.Mixture(blob=True)).train()
    steps = make_optimizer(ensemble.param_groups(), Settings(optimizer="sgd"))
    y = torch.arange(200) % 10
    x = 0.3 * torch.randn(200, 1, 16, 16) + torch.randn(10, 1, 16, 16)[y]
    losses = []
    for _ in range(30):
        loss = ensemble.loss(x, y)
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
