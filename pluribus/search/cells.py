"""Cells: small directed graphs whose edges carry operations.

    x_0 is the cell's input;  x_j = Σ_{i→j} o_ij(x_i);  the last node is the cell's output

All nodes have the same shape `[B, C, H, W]`, so an operation keeps the shape of what it gets. In NAS-Bench-201 a cell has four
nodes and all six edges i→j with i < j.

Dong & Yang, "NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search", 2020.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..core.errors import FileError
from ..core.seeds import derive_seed
from ..core.spec import require_count
from ..core.texts import quote

NAME = re.compile(r"[^|~+\s]+")
"""Names of operations: the other characters separate them in the notation of NAS-Bench-201."""


@dataclass(frozen=True)
class CellGraph:
    """The nodes of a cell and its edges (source, target), without operations. Edges are sorted by target, then by source.

    Raises:
        ValueError: an edge does not point from a lower node to a higher one or is there twice, or a node has no edge that
            leads to it or away from it.

    >>> CellGraph(3, ((0, 1), (1, 2))).edges
    ((0, 1), (1, 2))
    """

    nodes: int
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        require_count("nodes", self.nodes, 2, "a cell has an input and an output")
        edges = [tuple(edge) for edge in self.edges]
        for edge in edges:
            if len(edge) != 2 or any(isinstance(node, bool) or not isinstance(node, int) for node in edge):
                raise ValueError(f"an edge must be a pair of nodes, (source, target), got {quote(edge)}")
            if not 0 <= edge[0] < edge[1] < self.nodes:
                raise ValueError(
                    f"an edge must point from a lower node to a higher one of 0 to {self.nodes - 1}, got {edge[0]}→{edge[1]}"
                )
        if len(set(edges)) < len(edges):
            raise ValueError(f"every edge may be there once, got {edges}: leave the repeated one out")
        for node in range(self.nodes):
            if node > 0 and all(target != node for _, target in edges):
                raise ValueError(f"node {node} has no input: add an edge that leads to it, or number the nodes without it")
            if node < self.nodes - 1 and all(source != node for source, _ in edges):
                raise ValueError(f"node {node} leads nowhere: add an edge from it, or number the nodes without it")
        object.__setattr__(self, "edges", tuple(sorted(edges, key=lambda edge: (edge[1], edge[0]))))

    def combine(self, x: Tensor, run_edge: Callable[[int, Tensor], Tensor]) -> Tensor:
        """Return the output of a cell, given its input and a function that runs the operation of edge number e."""
        states = [x]
        for node in range(1, self.nodes):
            inputs = [run_edge(e, states[source]) for e, (source, target) in enumerate(self.edges) if target == node]
            states.append(sum(inputs[1:], inputs[0]))
        return states[-1]


def make_complete_graph(nodes: int) -> CellGraph:
    """Return the graph in which every node has edges from all nodes before it.

    >>> make_complete_graph(3).edges
    ((0, 1), (0, 2), (1, 2))
    """
    return CellGraph(nodes, tuple((source, target) for target in range(nodes) for source in range(target)))


NAS_BENCH_201 = make_complete_graph(4)


@dataclass(frozen=True)
class Cell:
    """A graph with the name of an operation on each edge, in the order of `graph.edges`.

    Raises:
        ValueError: there is not one name for each edge, or a name holds a space or one of | ~ +.

    >>> cell = Cell(make_complete_graph(3), ("nor_conv_3x3", "none", "skip_connect"))
    >>> str(cell)
    '|nor_conv_3x3~0|+|none~0|skip_connect~1|'
    >>> Cell.parse(str(cell)) == cell == Cell.from_json(cell.to_json())
    True
    """

    graph: CellGraph
    operations: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        if len(self.operations) != len(self.graph.edges):
            raise ValueError(f"{len(self.graph.edges)} edges need as many operations, got {len(self.operations)}")
        for name in self.operations:
            check_name(name)

    def __str__(self) -> str:
        """The notation of NAS-Bench-201: for each node from 1 on, `|operation~source|…|`; nodes are joined by `+`."""
        parts = []
        for node in range(1, self.graph.nodes):
            inputs = [f"{name}~{source}" for source, target, name in self.list_edges() if target == node]
            parts.append(f"|{'|'.join(inputs)}|")
        return "+".join(parts)

    def list_edges(self) -> list[tuple[int, int, str]]:
        """Return (source, target, operation) of every edge."""
        pairs = zip(self.graph.edges, self.operations, strict=True)
        return [(source, target, name) for (source, target), name in pairs]

    @staticmethod
    def parse(text: str) -> "Cell":
        """Return the cell that is written in the notation of NAS-Bench-201. Raises ValueError if the text is anything else."""
        form = r"\|([^|~+\s]+~\d{1,4}\|)+"
        parts = text.split("+")
        if not all(re.fullmatch(form, part) for part in parts):
            raise ValueError(f"a cell must be written as |operation~source|+|operation~source|…|, got {quote(text)}")
        inputs = [(node, each.split("~")) for node, part in enumerate(parts, 1) for each in part.strip("|").split("|")]
        return _make_cell(len(parts) + 1, [(int(source), node, name) for node, (name, source) in inputs])

    def to_json(self) -> dict[str, Any]:
        """Return numbers, texts and lists that JSON can hold."""
        return {"nodes": self.graph.nodes, "edges": [list(edge) for edge in self.list_edges()]}

    @staticmethod
    def from_json(content: Any) -> "Cell":
        """Return the cell that `to_json` returned. Raises FileError if `content` is anything else."""
        try:
            return _make_cell(content["nodes"], [(source, target, name) for source, target, name in content["edges"]])
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"this is no cell: {error}") from error


def check_name(name: object) -> None:
    """Raise ValueError unless this can be the name of an operation."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"the name of an operation must be a text without spaces and without | ~ +, got {quote(name)}")


def draw_random_cell(operations: Iterable[str] | Mapping[str, Any], graph: CellGraph = NAS_BENCH_201, *, seed: int = 0) -> Cell:
    """Draw a cell: for each edge one of the operations, all of them equally likely.

    Args:
        operations: their names, or a mapping that has the names as keys.
        seed: the same seed gives the same cell.

    Raises:
        ValueError: there are no operations.

    >>> draw_random_cell(["none", "skip_connect"], make_complete_graph(3)).graph.nodes
    3
    """
    names = list(operations)
    if not names:
        raise ValueError("operations must hold at least one name to draw from")
    generator = torch.Generator().manual_seed(derive_seed(seed))
    return Cell(graph, tuple(names[i] for i in torch.randint(len(names), (len(graph.edges),), generator=generator).tolist()))


def _make_cell(nodes: int, edges: list[tuple[int, int, str]]) -> Cell:
    """Return the cell of edges in any order."""
    graph = CellGraph(nodes, tuple((source, target) for source, target, _ in edges))
    names = {(source, target): name for source, target, name in edges}
    return Cell(graph, tuple(names[edge] for edge in graph.edges))
