"""The file format of checkpoints: safetensors, with everything that is no tensor as JSON in the metadata.

Nothing is pickled or unpickled. Every file carries a digest of its content, so that a damaged one is recognised.
Lightning's own format is a pickle, and PyTorch's distributed format is a folder; hence a format of our own.
"""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
from lightning.fabric.plugins.io import CheckpointIO
from torch import Tensor

from ..core.errors import FileError
from ..core.files import write_file
from ..core.tensor_files import compute_digest, read_tensors

FORMAT = "pluribus-checkpoint-1"


def serialize_checkpoint(state: dict[str, Any]) -> bytes:
    """Return the bytes of a checkpoint file.

    Args:
        state: dictionaries, lists and tuples, nested at will, of tensors, numbers, strings and None.

    Raises:
        TypeError: `state` holds a value of another type.

    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "step-00000001.safetensors")
    ...     _ = path.write_bytes(serialize_checkpoint({"step": 1, "weights": [torch.ones(2)]}))
    ...     read_checkpoint(path)
    {'step': 1, 'weights': [tensor([1., 1.])]}
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_encode(state, tensors))
    metadata = {"format": FORMAT, "state": text, "digest": compute_digest(text, tensors)}
    return safetensors.torch.save(tensors, metadata=metadata)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the state that `serialize_checkpoint` wrote.

    Raises:
        FileError: the file is damaged, or holds something else.
    """
    metadata, tensors = read_tensors(path)
    if metadata.get("format") != FORMAT:
        raise FileError(f"{path} is no checkpoint of this version of pluribus")
    if metadata.get("digest") != compute_digest(metadata.get("state", ""), tensors):
        raise FileError(f"{path} is damaged: its content is not what was written")
    try:
        state = _decode(json.loads(metadata["state"]), tensors)
        if not isinstance(state, dict):
            raise TypeError(type(state).__name__)
    except (KeyError, TypeError, ValueError, RecursionError) as error:  # the digest fits: somebody wrote it so on purpose
        raise FileError(f"{path} is no checkpoint: its state cannot be read") from error
    return state


class SafetensorsIO(CheckpointIO):
    """Lets Lightning write and read its checkpoints in this format."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        write_file(Path(path), serialize_checkpoint(checkpoint))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        return read_checkpoint(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def _encode(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return `value` as JSON with the type of every container, and move its tensors into `tensors`."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_encode(key, tensors), _encode(item, tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [_encode(item, tensors) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a checkpoint holds tensors, numbers, texts and containers of them, got {type(value).__name__}")


def _decode(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_decode(key, tensors): _decode(item, tensors) for key, item in content}
    items = [_decode(item, tensors) for item in content]
    return tuple(items) if kind == "tuple" else items
