"""Weights that are computed of others are computed once, and never stale."""

import copy

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, Inner, Variance, VariationalDropout
from pluribus.core.members import Converted


class Counting(Converted):
    def __init__(self) -> None:
        super().__init__()
        self.source = nn.Parameter(torch.ones(3))
        self.computed = 0

    def forward(self) -> torch.Tensor:
        def compute() -> torch.Tensor:
            self.computed += 1
            return self.source * 2

        return self.compute_once("double", compute, self.source)


def test_what_is_known_is_not_computed_again_until_a_source_changes():
    layer = Counting().eval()
    with torch.no_grad():
        layer(), layer()
        assert layer.computed == 1
        layer.source.add_(1)
        assert layer().tolist() == [4, 4, 4]
        layer.load_state_dict({"source": torch.zeros(3)})
        assert layer().tolist() == [0, 0, 0]
        layer.source.data = torch.ones(3)
        assert layer().tolist() == [2, 2, 2]
        layer.double()
        assert layer().dtype == torch.double
        layer.source.data.add_(1)  # torch does not count this
        assert layer.train().eval()().tolist() == [4, 4, 4], "a change of mode forgets"


def test_with_gradients_or_in_training_nothing_is_kept():
    layer = Counting().eval()
    assert layer().requires_grad
    with torch.no_grad():
        layer.train()(), layer()
    assert layer.computed == 3


def test_a_copy_knows_nothing():
    layer = Counting().eval()
    with torch.no_grad():
        layer()
    assert copy.deepcopy(layer)._computed == {}


@pytest.mark.parametrize("spec", [Inner(3, include="*"), MIMO(2), Variance(samples=2), VariationalDropout(samples=2)], ids=str)
def test_an_optimiser_step_shows_in_the_next_answer(spec):
    """In evaluation mode all the while, as who fine-tunes with frozen BatchNorms does."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 3)).double(), spec
    ).eval()
    x, y = torch.randn(8, 4, dtype=torch.double), torch.arange(8) % 3
    optimizer = torch.optim.SGD(ensemble.parameters(), lr=0.5)
    for _ in range(2):
        torch.manual_seed(1)
        with torch.no_grad():
            kept = ensemble(x)
        torch.manual_seed(1)
        torch.testing.assert_close(ensemble(x).detach(), kept, rtol=0, atol=1e-12)
        ensemble.loss(x, y, examples=8).backward()
        optimizer.step()


def test_the_weights_of_single_members_are_not_kept():
    """They would take M times the memory of the network."""
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), pluribus.BatchEnsemble(3)).eval()
    with torch.no_grad():
        for _ in range(2):
            ensemble.executor.run(ensemble, torch.randn(4, 6))
            ensemble.executor.run_alone(ensemble, torch.randn(4, 6), 1)
    assert all(layer._computed == {} for layer in ensemble.modules() if isinstance(layer, Converted))
