"""What must hold for a file of weights before an ensemble is built from it, and before it takes the weights.

A file is not trusted: every type is checked, and every number that says how much to compute has a limit. The checks use no
schema library, because `import pluribus` needs torch and numpy only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .ensemble import Ensemble
from .errors import FileError
from .spec import Spec
from .texts import quote

LARGEST_COUNT = 100_000
"""The most members, copies or samples that a file may ask for. After loading, `samples` may be set to any number."""
FLOATING = (torch.half, torch.bfloat16, torch.float, torch.double)

_EXPECTED: dict[str, str] = {
    "spec": "a mapping",
    "task": "'classification' or 'regression'",
    "output": "a whole number, a text or null",
    "order": "null, or a list of texts",
    "aliases": "a mapping of texts to texts",
    "settings": "a mapping of texts to mappings",
    "frozen": "a list of texts",
    "network": "a list of texts",
}
_OPTIONAL = {"apart": "a list of texts", "class_axis": "1 or -1", "batch_axis": "0 or null"}


def check_description(target: Path, about: Mapping[str, Any]) -> None:
    """Raise FileError unless the description in a file of weights has every entry, and each is of its type."""
    missing = sorted(_EXPECTED.keys() - about.keys())
    if missing:
        raise FileError(f"{target} is damaged: its description lacks {', '.join(missing)}")
    settings = about["settings"]
    fits = {
        "spec": isinstance(about["spec"], dict),
        "task": about["task"] in ("classification", "regression"),
        "output": about["output"] is None or (isinstance(about["output"], (int, str)) and about["output"] not in (True, False)),
        "order": about["order"] is None or _holds_texts(about["order"]),
        "aliases": isinstance(about["aliases"], dict) and _holds_texts(list(about["aliases"].values())),
        "settings": isinstance(settings, dict) and all(isinstance(own, dict) for own in settings.values()),
        "frozen": _holds_texts(about["frozen"]),
        "network": _holds_texts(about["network"]),
        "class_axis": _is_one_of(about.get("class_axis", 1), (1, -1)),
        "batch_axis": _is_one_of(about.get("batch_axis", 0), (0, None)),
        "apart": _holds_texts(about.get("apart", [])),
    }
    for name, fit in fits.items():
        if not fit:
            raise FileError(
                f"{target} is damaged: its {name} must be {(_EXPECTED | _OPTIONAL)[name]}, got {quote(about[name])}"
            )


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    """Whether a value is one of these, and not something else that is equal to it, as True is to 1."""
    return any(value is None if choice is None else type(value) is int and value == choice for choice in choices)


def _holds_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def check_size(target: Path, spec: Spec) -> None:
    """Raise FileError if a spec from a file, or one nested in it, asks for more members, copies or samples than a file may."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        if isinstance(value, Spec):
            check_size(target, value)
        elif field.name == spec.size_option:
            check_count(target, field.name, value)


def check_count(target: Path, name: str, value: Any) -> None:
    """Raise FileError if a number of members, copies or samples is more than a file may ask for."""
    if isinstance(value, int) and value > LARGEST_COUNT:
        raise FileError(f"{target} asks for {quote(value)} {name}, and a file may ask for at most {LARGEST_COUNT:,}")


def count_draws(target: Path, draws: Sequence[Tensor]) -> int:
    """Return M, of how many members the fixed draws of layers are, `[M, …]` each. Raises FileError if they differ in that."""
    counts = {len(draw) if draw.dim() else 0 for draw in draws}
    if len(counts) > 1 or 0 in counts:
        raise FileError(f"{target} is damaged: its fixed draws must be of one number of members, got {sorted(counts)}")
    return counts.pop()


def check_tensors(target: Path, own: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    """Raise FileError unless the tensors of a file have the names, shapes and kinds of those of the ensemble, `own`.

    A floating tensor may be of any floating dtype; others, such as masks and counters, must be of the same dtype.
    """
    for name in sorted(own.keys() ^ tensors.keys()):
        where = "is missing from the file" if name in own else "has no place in the ensemble"
        raise FileError(f"{target} does not fit this network: {name} {where}")
    for name, tensor in own.items():
        found = tensors[name]
        if tensor.shape != found.shape:
            raise FileError(
                f"{target} does not fit this network: {name} is {list(found.shape)} in the file, {list(tensor.shape)} here"
            )
        if found.dtype not in FLOATING if tensor.is_floating_point() else found.dtype != tensor.dtype:
            wanted = "floating-point numbers" if tensor.is_floating_point() else _name_dtype(tensor)
            raise FileError(f"{target} does not fit this network: {name} must hold {wanted}, got {_name_dtype(found)}")


def find_non_finite(ensemble: Ensemble, tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of the first of `tensors`, which have the names of the ensemble's, that holds NaN or ∞; or None.

    A buffer may be infinite where that of the ensemble is: a network may keep −∞ in a mask.
    """
    parameters = {name for name, _ in ensemble.named_parameters(remove_duplicate=False)}
    own = ensemble.state_dict()
    for name, tensor in tensors.items():
        odd = ~tensor.isfinite()
        if not bool(odd.any()):
            continue
        known = own.get(name)
        if name in parameters or known is None or known.shape != tensor.shape:
            return name
        if not torch.equal(known.to(tensor)[odd], tensor[odd]):
            return name
    return None


def _name_dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
