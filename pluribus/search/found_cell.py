"""What a search returns: the cell, the probabilities of the operations on each edge, and the history."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from ..core.errors import FileError
from ..core.files import restore_number
from .cells import Cell, CellGraph
from .settings import SearchSettings

FORMAT = "pluribus-found-cell-1"

Table = tuple[tuple[float, ...], ...]
"""`[E, O]`: a number for each edge and operation."""


@dataclass(frozen=True)
class SearchEpoch:
    """An epoch of a search. Losses and accuracies are means over the batches, as they were before each step.

    `cell` has the most probable operation on each edge after the epoch, in the notation of NAS-Bench-201.
    """

    epoch: int
    lr: float
    temperature: float | None
    loss: float
    accuracy: float
    validation_loss: float
    validation_accuracy: float
    cell: str
    probabilities: Table


@dataclass(frozen=True)
class FoundCell:
    """The result of a search: on each edge of `cell` stands the operation that is most probable there.

    Args:
        candidates: the names of the O operations that were searched, in the order of the columns of `probabilities`.
        probabilities: `[E, O]`, the softmax of the architecture parameters of each edge.
        history: a row for every epoch.
        settings: how it was searched.
    """

    cell: Cell
    candidates: tuple[str, ...]
    probabilities: Table
    history: tuple[SearchEpoch, ...]
    settings: SearchSettings

    def __str__(self) -> str:
        return str(self.cell)

    def get_probabilities(self, source: int, target: int) -> dict[str, float]:
        """Return the probability of each operation on an edge. Raises ValueError if there is no such edge."""
        if (source, target) not in self.cell.graph.edges:
            raise ValueError(f"the cell has no edge {source}→{target}: it has {list(self.cell.graph.edges)}")
        row = self.probabilities[self.cell.graph.edges.index((source, target))]
        return dict(zip(self.candidates, row, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return numbers, texts and lists that JSON can hold, exactly."""
        return {
            "format": FORMAT,
            "notation": str(self.cell),
            "cell": self.cell.to_json(),
            "candidates": list(self.candidates),
            "probabilities": [list(row) for row in self.probabilities],
            "settings": self.settings.model_dump(),
            "history": [describe_epoch(epoch) for epoch in self.history],
        }

    @staticmethod
    def from_json(content: Any) -> "FoundCell":
        """Return the result that `to_json` returned. Raises FileError if `content` is anything else."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileError(f"this is no result of a search: its format must be {FORMAT!r}")
        try:
            cell = Cell.from_json(content["cell"])
            candidates = tuple(content["candidates"])
            return FoundCell(
                cell,
                candidates,
                restore_table(content["probabilities"], cell.graph, len(candidates)),
                tuple(restore_epoch(epoch, cell.graph, len(candidates)) for epoch in content["history"]),
                SearchSettings(**content["settings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"this is no whole result of a search: {error}") from error


def describe_epoch(epoch: SearchEpoch) -> dict[str, Any]:
    """Return an epoch as JSON can hold it."""
    return dataclasses.asdict(epoch) | {"probabilities": [list(row) for row in epoch.probabilities]}


def restore_epoch(content: dict[str, Any], graph: CellGraph, count: int) -> SearchEpoch:
    """Return the epoch that `describe_epoch` described, of a search with `count` operations. Raises KeyError, ValueError …"""
    numbers = {
        name: restore_number(content[name]) for name in ("lr", "loss", "accuracy", "validation_loss", "validation_accuracy")
    }
    probabilities = restore_table(content["probabilities"], graph, count)
    return SearchEpoch(
        epoch=int(content["epoch"]),
        temperature=content["temperature"],
        cell=str(Cell.parse(content["cell"])),
        probabilities=probabilities,
        **numbers,
    )


def restore_table(rows: list[list[float]], graph: CellGraph, count: int) -> Table:
    """Return a table `[E, O]`. Raises ValueError if it has another shape."""
    table = tuple(tuple(float(value) for value in row) for row in rows)
    if len(table) != len(graph.edges) or any(len(row) != count for row in table):
        raise ValueError(f"probabilities must have {len(graph.edges)} rows of {count} numbers")
    return table
