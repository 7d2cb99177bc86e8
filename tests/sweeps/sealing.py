"""Files that are formally right: their digests are computed anew after a mutation, as somebody who means harm would do."""

import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from pluribus.core.tensor_files import compute_digest
from pluribus.file_formats.digests import DIGEST, YAML_PREFIX, digest_content, digest_text, split_yaml_digest


def seal(path: Path) -> None:
    """Write the digest that belongs to the content, if the file has one and can be read at all."""
    with contextlib.suppress(ValueError, TypeError, RecursionError, AttributeError, safetensors.SafetensorError):
        if path.suffix == ".safetensors":
            seal_tensors(path)
        elif path.suffix == ".yaml":
            _, rest = split_yaml_digest(path.read_text())
            path.write_text(f"{YAML_PREFIX}{digest_text(rest)}\n{rest}")
        else:
            content = json.loads(path.read_text())
            if DIGEST in content:
                path.write_text(json.dumps(content | {DIGEST: digest_content(content)}, indent=1))


def seal_tensors(path: Path) -> None:
    """The digest of a checkpoint is over its state, that of weights is in their description."""
    notes, tensors = read_tensors(path)
    if "state" in notes:
        notes[DIGEST] = compute_digest(notes["state"], tensors)
    else:
        for name, text in notes.items():
            about = json.loads(text)
            rest = {key: value for key, value in about.items() if key != DIGEST}
            about[DIGEST] = compute_digest(json.dumps(rest, sort_keys=True, separators=(",", ":")), tensors)
            notes[name] = json.dumps(about)
    path.write_bytes(safetensors.torch.save(tensors, metadata=notes))


# --- safetensors -------------------------------------------------------------------------------------------------------


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    with safetensors.safe_open(path, framework="pt") as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def fill_tensor(path: Path, place: float, value: float) -> str:
    """Set every number of one tensor to a value."""
    notes, tensors = read_tensors(path)
    names = sorted(name for name, tensor in tensors.items() if tensor.is_floating_point())
    name = names[int(place * len(names))]
    tensors[name] = torch.full_like(tensors[name], value)
    path.write_bytes(safetensors.torch.save(tensors, metadata=notes))
    return f"{name} filled with {value}"


def read_header(path: Path) -> tuple[Any, bytes]:
    """The header, with the texts of its metadata that are JSON decoded, and the bytes of the tensors."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    notes = header.get("__metadata__", {})
    for name, text in notes.items():
        if text.startswith(("{", "[")):
            notes[name] = json.loads(text)
    return header, data[8 + size :]


def write_header(path: Path, header: Any, expand: Callable[[str], str]) -> None:
    """Replace the header, and leave the tensors as they are. What is no text in the metadata is written as JSON."""
    tensors = read_header(path)[1]
    notes = header.get("__metadata__") if isinstance(header, dict) else None
    if isinstance(notes, dict):
        header = header | {"__metadata__": {k: v if isinstance(v, str) else expand(json.dumps(v)) for k, v in notes.items()}}
    text = expand(json.dumps(header)).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + tensors)
