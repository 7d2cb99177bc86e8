"""A supernet: the network of a cell with every operation on every edge, and gates that mix or choose among them.

With architecture parameters α `[E, O]`, which all cells share, edge e of a cell answers

    DARTS:  Σ_o p_o · o(x),   p = softmax(α_e)                                                                     (eq. 2)
    GDAS:   h_k · o_k(x),     p = softmax((log softmax(α_e) + G) / τ),  G_o ~ Gumbel(0, 1),  k = argmax p        (eqs. 3-7)

In GDAS h_k is 1 going forward and p_k going back (straight-through), so only the chosen operation is computed, and

    ∂L/∂α_j = ⟨∂L/∂y, o_k(x)⟩ · p_k (δ_kj − p_j) / τ

One draw serves all cells in a pass. To add the gates of the operations that were not chosen, which are 0, as numbers to the
answer would give α a gradient of ⟨∂L/∂y, 1⟩ for each of them, which knows nothing of these operations: this does not.

A gate of GDAS has no gradient where its edge is the only one that leads to a node, and all that follows that node is batch
normalisation: the loss does not depend on the scale of what is normalised. So GDAS learns nothing in a chain of edges.

In the cells batch normalisation has no scale and no shift, which could undo the gates, and normalises by the batch always:
running means would mix those of different cells. `BatchNorm` layers of a user's own operations are changed alike.

Liu et al., "DARTS: Differentiable Architecture Search", 2019; Dong & Yang, "Searching for a Robust Neural Architecture in Four
GPU Hours", 2019.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from .cells import NAS_BENCH_201, Cell, CellGraph
from .found_cell import Table
from .networks import list_blocks
from .operations import Factory, build_operation

INITIAL_SPREAD = 1e-3
"""The standard deviation of architecture parameters before the first step."""


class Gates(NamedTuple):
    """What multiplies each operation: `weights` `[E, O]`. With `chosen` only operation `chosen[e]` of edge e is computed."""

    weights: Tensor
    chosen: tuple[int, ...] | None = None

    def detach(self) -> "Gates":
        """The same numbers without a gradient, for a step of the weights alone."""
        return Gates(self.weights.detach(), self.chosen)


def mix_operations(architecture: Tensor) -> Gates:
    """Return the gates of DARTS for architecture parameters `[E, O]`.

    >>> mix_operations(torch.zeros(1, 2)).weights
    tensor([[0.5000, 0.5000]])
    """
    return Gates(architecture.softmax(1))


def sample_operations(architecture: Tensor, temperature: float, generator: torch.Generator | None = None) -> Gates:
    """Draw the gates of GDAS for architecture parameters `[E, O]`: one operation an edge, with the gradient of the softmax.

    Args:
        temperature: τ; the smaller it is, the nearer is the gradient to that of the discrete choice, and the noisier.
        generator: on the CPU; noise is drawn there for every device.

    >>> gates = sample_operations(torch.tensor([[0.0, 50.0]]), temperature=1.0)
    >>> gates.chosen, gates.weights
    ((1,), tensor([[0., 1.]]))
    """
    exponential = torch.empty(architecture.shape, dtype=torch.double).exponential_(generator=generator)
    gumbel = -exponential.log().to(architecture)
    soft = ((architecture.log_softmax(1) + gumbel) / temperature).softmax(1)
    chosen = soft.argmax(1)
    hard = torch.zeros_like(soft).scatter_(1, chosen[:, None], 1.0)
    return Gates((soft - soft.detach()) + hard, tuple(chosen.tolist()))  # the difference is exactly 0


class SearchCell(nn.Module):
    """A cell with all operations on all edges: `[B, C, H, W]` → `[B, C, H, W]`."""

    def __init__(self, graph: CellGraph, channels: int, operations: Mapping[str, Factory]) -> None:
        super().__init__()
        self.graph = graph
        self.edges = nn.ModuleList(
            nn.ModuleList(build_operation(name, channels, operations) for name in operations) for _ in graph.edges
        )
        simplify_normalization(self.edges)

    def forward(self, x: Tensor, gates: Gates) -> Tensor:
        return self.graph.combine(x, lambda edge, state: self.run_edge(edge, state, gates))

    def run_edge(self, edge: int, x: Tensor, gates: Gates) -> Tensor:
        operations, weights = self.edges[edge], gates.weights[edge]
        assert isinstance(operations, nn.ModuleList)
        if gates.chosen is not None:
            chosen = gates.chosen[edge]
            return weights[chosen] * operations[chosen](x)
        parts = [weight * operation(x) for weight, operation in zip(weights, operations, strict=True)]
        return sum(parts[1:], parts[0])


class Supernet(nn.Module):
    """A network whose cells have every operation on every edge; `architecture` `[E, O]` says how much each counts.

    Args:
        operations: O factories by name.
        graph: the nodes and E edges of a cell.
        classes, channels, width, cells, stacks: as of `build_network`.

    Raises:
        ValueError: a number is too small, or a factory returns no module.

    >>> from pluribus.search import make_operations
    >>> supernet = Supernet(make_operations(copies=2), classes=10, channels=1, width=4, cells=1)
    >>> supernet.architecture.shape
    torch.Size([6, 7])
    >>> supernet(torch.zeros(2, 1, 8, 8), mix_operations(supernet.architecture)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        operations: Mapping[str, Factory],
        graph: CellGraph = NAS_BENCH_201,
        *,
        classes: int = 10,
        channels: int = 3,
        width: int = 16,
        cells: int = 5,
        stacks: int = 3,
    ) -> None:
        super().__init__()
        self.graph, self.names = graph, tuple(operations)
        self.architecture = nn.Parameter(INITIAL_SPREAD * torch.randn(len(graph.edges), len(self.names)))
        sizes = {"classes": classes, "channels": channels, "width": width, "cells": cells, "stacks": stacks}
        self.blocks = nn.ModuleList(list_blocks(lambda width: SearchCell(graph, width, operations), **sizes))

    def forward(self, x: Tensor, gates: Gates) -> Tensor:
        """Return logits: `[B, channels, H, W]` → `[B, C]`."""
        for block in self.blocks:
            x = block(x, gates) if isinstance(block, SearchCell) else block(x)
        return x

    def list_weights(self) -> list[nn.Parameter]:
        """Return all parameters but those of the architecture."""
        return list(self.blocks.parameters())

    def compute_probabilities(self) -> Table:
        """Return the softmax of the architecture parameters of each edge, `[E, O]`."""
        return tuple(tuple(row) for row in self.architecture.detach().double().softmax(1).tolist())

    def choose_cell(self) -> Cell:
        """Return the cell with the most probable operation on each edge; of equal ones, the first."""
        return Cell(self.graph, tuple(self.names[row.index(max(row))] for row in self.compute_probabilities()))


def simplify_normalization(module: nn.Module) -> None:
    """Take scale, shift and running statistics from all batch normalisation layers of a new module, in place."""
    for layer in module.modules():
        if isinstance(layer, _BatchNorm):
            layer.affine = layer.track_running_stats = False
            layer.weight = layer.bias = None  # type: ignore[assignment]
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None
