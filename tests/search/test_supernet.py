"""The gates of DARTS and GDAS, on operations that can be written out."""

import pytest
import torch
from torch import nn

from pluribus.search import CellGraph, Supernet, make_complete_graph, make_operations, mix_operations, sample_operations
from pluribus.search.supernet import SearchCell


class Call(nn.Module):
    """A function as an operation, which counts its calls."""

    calls = 0

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        self.calls += 1
        return self.function(x)


FUNCTIONS = {"double": lambda x: 2 * x, "tanh": torch.tanh, "none": torch.zeros_like}
OPERATIONS = {name: lambda channels, f=function: Call(f) for name, function in FUNCTIONS.items()}


@pytest.fixture
def x():
    return torch.randn(3, 2, 4, 4, dtype=torch.double)


@pytest.fixture
def architecture():
    return torch.randn(3, 3, dtype=torch.double, requires_grad=True)


def test_darts_mixes_all_operations_by_the_softmax(x, architecture):
    cell = SearchCell(make_complete_graph(3), 2, OPERATIONS)
    e = architecture.detach().exp()
    p = e / e.sum(1, keepdim=True)
    one = p[0, 0] * 2 * x + p[0, 1] * x.tanh()
    two = p[1, 0] * 2 * x + p[1, 1] * x.tanh() + p[2, 0] * 2 * one + p[2, 1] * one.tanh()
    torch.testing.assert_close(cell(x, mix_operations(architecture)), two)


def test_gdas_answers_as_the_chosen_operations_alone_and_computes_no_other(x, architecture):
    cell = SearchCell(make_complete_graph(3), 2, OPERATIONS)
    seen = set()
    for seed in range(20):
        for module in cell.modules():
            if isinstance(module, Call):
                module.calls = 0
        gates = sample_operations(architecture, 3.0, torch.Generator().manual_seed(seed))
        first, second, third = (list(FUNCTIONS.values())[k] for k in gates.chosen)
        assert torch.equal(cell(x, gates), second(x) + third(first(x)))
        assert [[o.calls for o in edge] for edge in cell.edges] == [[int(k == o) for o in range(3)] for k in gates.chosen]
        seen.add(gates.chosen)
    assert len(seen) > 3


@pytest.mark.parametrize("temperature", [0.5, 10.0])
def test_the_gradient_of_gdas_is_the_straight_through_one(temperature, x):
    """∂L/∂α_j = ⟨∂L/∂y, o_k(x)⟩ p_k (δ_kj − p_j) / τ on a single edge."""
    cell, target = SearchCell(CellGraph(2, ((0, 1),)), 2, OPERATIONS), torch.randn_like(x)
    for seed in range(5):
        architecture = torch.randn(1, 3, dtype=torch.double, requires_grad=True)
        gates = sample_operations(architecture, temperature, torch.Generator().manual_seed(seed))
        (cell(x, gates) - target).square().sum().backward()

        uniform = torch.empty(1, 3, dtype=torch.double).exponential_(generator=torch.Generator().manual_seed(seed))
        noisy = ((architecture.detach() - uniform.log()) / temperature).exp()
        p, (k,) = (noisy / noisy.sum())[0], gates.chosen
        assert k == int(p.argmax())
        answer = list(FUNCTIONS.values())[k](x)
        product = (2 * (answer - target) * answer).sum()
        expected = product * p[k] * (torch.eye(3, dtype=torch.double)[k] - p) / temperature
        torch.testing.assert_close(architecture.grad[0], expected)


def test_gdas_chooses_operations_with_the_probabilities_of_the_softmax():
    """20,000 draws: the standard deviation of a share is at most 0.0035."""
    architecture = torch.tensor([1.0, 0.0, -1.0])
    generator = torch.Generator().manual_seed(0)
    chosen = torch.tensor(sample_operations(architecture.expand(20000, 3), 10.0, generator).chosen)
    shares = torch.bincount(chosen, minlength=3) / 20000
    torch.testing.assert_close(shares, architecture.softmax(0), atol=0.014, rtol=0)


def test_a_gate_before_normalisation_alone_has_no_gradient():
    """The module's docstring says so: the loss does not depend on the scale of what the head normalises."""
    supernet = Supernet(make_operations(copies=2), CellGraph(2, ((0, 1),)), classes=3, channels=1, width=4, cells=1, stacks=1)
    supernet = supernet.double()
    x, y = torch.randn(8, 1, 6, 6, dtype=torch.double), torch.arange(8) % 3
    for draw, small in ((lambda a: sample_operations(a, 1.0), True), (mix_operations, False)):
        loss = nn.functional.cross_entropy(supernet(x, draw(supernet.architecture)), y)
        (gradient,) = torch.autograd.grad(loss, [supernet.architecture])
        assert (gradient.abs().max() < 1e-5) == small


def test_weights_are_all_parameters_but_the_architecture_and_cells_do_not_scale():
    supernet = Supernet(make_operations(copies=2), classes=3, channels=1, width=4, cells=1, stacks=2)
    names = {name for name, _ in supernet.named_parameters()}
    assert len(supernet.list_weights()) == len(names) - 1
    cells = [module for module in supernet.modules() if isinstance(module, SearchCell)]
    # of an edge: a 1×1 and a 3×3 convolution, and twice two copies of a 3×3 one; no scale and no shift
    assert [sum(p.numel() for p in cell.parameters()) for cell in cells] == [6 * c * c * (1 + 9 + 18 + 18) for c in (4, 8)]
    assert not any(list(cell.buffers()) for cell in cells)


def test_the_most_probable_operations_are_chosen():
    supernet = Supernet(OPERATIONS, CellGraph(3, ((0, 1), (1, 2))), classes=2, channels=1, width=2, cells=1, stacks=1)
    supernet.architecture.data = torch.tensor([[0.0, 2.0, 1.0], [0.0, 0.0, 0.5]])
    assert str(supernet.choose_cell()) == "|tanh~0|+|none~1|"
    torch.testing.assert_close(torch.tensor(supernet.compute_probabilities()).sum(1), torch.ones(2))
