"""Safetensors files with a digest: tensors, and a text about them, that are recognised when one bit of them has changed.

The digest finds damage. It does not prove who wrote a file: whoever changes a file on purpose can compute it anew.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .errors import FileError
from .texts import quote


def serialize_tensors(tensors: Mapping[str, Tensor], about: Mapping[str, Any], place: str) -> bytes:
    """Return the bytes of a safetensors file whose metadata hold `about`, with a digest, as JSON under the key `place`.

    There is one key only: safetensors writes several in a random order, and equal ensembles are to give equal files.
    """
    about = {**about, "digest": compute_digest(_format_canonical(about), tensors)}
    return import_safetensors().torch.save(dict(tensors), metadata={place: json.dumps(about)})


def read_described_tensors(
    target: Path, place: str, formats: Sequence[str], hint: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what `serialize_tensors` wrote: the description, and the tensors.

    The digest is verified if there is one; without one the description has no key "digest", and the caller decides.

    Args:
        formats: the values of the description's "format" that can be read, the newest first.
        hint: the end of the sentence about a safetensors file without such a description.

    Raises:
        FileError: the file is damaged, or holds something else.
    """
    metadata, tensors = read_tensors(target)
    if place not in metadata:
        raise FileError(f"{target} is a safetensors file, but {hint}")
    try:
        about = json.loads(metadata[place])
    except (ValueError, RecursionError) as error:
        raise FileError(f"{target} is damaged: its description cannot be read") from error
    if not isinstance(about, dict):
        raise FileError(f"{target} is damaged: its description must be a mapping, got {quote(about)}")
    if about.get("format") not in formats:
        raise FileError(f"{target} has the format {quote(about.get('format'))}; this version of pluribus reads {formats[0]!r}")
    if "digest" in about:
        rest = {key: value for key, value in about.items() if key != "digest"}
        if about["digest"] != compute_digest(_format_canonical(rest), tensors):
            raise FileError(f"{target} is damaged: its content is not what was written; take it from a copy")
    return about, tensors


def read_tensors(target: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the metadata of a safetensors file, and its tensors.

    Raises:
        FileError: there is no such file, or it is no whole safetensors file.
    """
    safetensors = import_safetensors()
    if not target.exists():
        raise FileError(f"there is no file {target}")
    if not target.is_file():
        raise FileError(f"{target} is a folder: name the .safetensors file")
    try:
        with safetensors.safe_open(target, framework="pt") as opened:
            return opened.metadata() or {}, {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError, KeyError, AttributeError, TypeError, RuntimeError) as error:
        raise FileError(f"{target} is damaged, or no safetensors file: {error}") from error


def compute_digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a text, and of the name, dtype, shape and bytes of every tensor.

    >>> compute_digest("{}", {"a": torch.zeros(2)}) == compute_digest("{}", {"a": torch.zeros(1, 2)})
    False
    """
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{list(tensors[name].shape)}".encode())
        if tensors[name].numel():
            digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _format_canonical(about: Mapping[str, Any]) -> str:
    return json.dumps(about, sort_keys=True, separators=(",", ":"))


def import_safetensors() -> Any:
    """Return the library, or raise ImportError with a sentence that says how to get it. `import pluribus` does without."""
    try:
        import safetensors
        import safetensors.torch
    except ImportError as error:
        raise ImportError("saving and loading need safetensors: pip install safetensors") from error
    return safetensors
