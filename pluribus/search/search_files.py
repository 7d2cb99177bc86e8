"""The files of a search: its state after every epoch, from which it goes on exactly, and in the end the cell.

`search.safetensors` holds weights, architecture parameters and both optimisers; history and settings are JSON in its metadata.
It is replaced as a whole after every epoch. Random numbers need no state: they are a function of the seed and the place.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..core.errors import FileError
from ..core.files import format_json, remove_leftovers, write_file
from ..training.checkpoint_files import read_checkpoint, serialize_checkpoint
from .cells import CellGraph
from .found_cell import FoundCell, SearchEpoch, describe_epoch, restore_epoch

STATE, RESULT = "search.safetensors", "cell.json"

Optimizers = tuple[torch.optim.Optimizer, torch.optim.Optimizer]


def prepare_folder(folder: Path, resume: bool) -> None:
    """Make the folder of a search.

    Raises:
        FileError: it holds a search that is not to be resumed, or cannot be made.
    """
    if not resume and (folder / STATE).exists():
        raise FileError(f"{folder} holds a search: go on with it by resume=True, or name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}") from error
    remove_leftovers(folder)


def write_state(
    folder: Path, about: dict[str, Any], supernet: nn.Module, optimizers: Optimizers, history: list[SearchEpoch]
) -> None:
    """Replace the state of the search in the folder. Raises FileError if it cannot be written."""
    state = {
        "about": about,
        "supernet": dict(supernet.state_dict()),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        "history": [describe_epoch(epoch) for epoch in history],
    }
    write_file(folder / STATE, serialize_checkpoint(state))


def restore_state(
    folder: Path, about: dict[str, Any], supernet: nn.Module, optimizers: Optimizers, graph: CellGraph
) -> list[SearchEpoch]:
    """Load the state of a search into the supernet and its optimisers, and return the history. Without a file it is empty.

    Raises:
        FileError: the file is damaged, or is that of a search with other settings, operations or data.
    """
    path = folder / STATE
    if not path.exists():
        return []
    state = read_checkpoint(path)
    before = state.get("about")
    if not isinstance(before, dict):
        raise FileError(f"{path} is no state of a search: name another folder")
    for name in about:
        if before.get(name) != about[name]:
            raise FileError(
                f"{path} is of a search with {name} {before.get(name)!r}, and this one has {about[name]!r}: go on with the "
                "same, or name another folder"
            )
    try:
        supernet.load_state_dict(state["supernet"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        return [restore_epoch(row, graph, len(about["operations"])) for row in state["history"]]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileError(f"{path} does not fit these operations or this version of pluribus: name another folder") from error


def write_result(folder: Path, found: FoundCell) -> None:
    """Write the cell with its probabilities and history as JSON. Raises FileError if it cannot be written."""
    write_file(folder / RESULT, format_json(found.to_json()) + "\n")
