"""What an exported file says about itself: how it was made, what it takes, what it answers, and by which rules."""

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..core.describe import count_parameters
from ..core.ensemble import Ensemble
from ..core.errors import FileError
from ..core.files import format_json
from ..data import Columns, Pixels, Preparation
from ..file_formats.exported_files import ExportedRecord
from ..file_formats.reading import parse_record
from .program import MEANINGS, Program


def collect_facts(
    program: Program,
    ensemble: Ensemble,
    inputs: Sequence[tuple[str, Tensor]],
    classes: Sequence[str] = (),
    title: str = "",
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The facts about a program as JSON, as `ExportedRecord` has them; `inputs` are names with some rows each."""
    known = isinstance(program.preparation, Preparation) and type(program.preparation) in (Preparation, Pixels, Columns)
    found = {
        "title": title,
        "torch": torch.__version__,
        "method": str(ensemble.spec),
        "members": ensemble.count_members(training=False),
        "parameters": count_parameters(program.network),
        "has_fixed_draws": ensemble.is_frozen,
        "task": ensemble.task,
        "classes": list(classes),
        "inputs": [{"name": name, "type": name_type(x.dtype), "shape": list(x.shape[1:])} for name, x in inputs],
        "outputs": {name: MEANINGS[name] for name in program.names},
        "rules": [] if program.rules is None else program.rules.explain(),
        "quantiles": list(ensemble.quantile_levels),
        "preparation": program.preparation.to_json() if known and program.preparation is not None else None,
        "notes": list(notes),
    }
    plain: dict[str, Any] = json.loads(format_json(found))
    return plain


def read_facts(text: str | None, file: object) -> dict[str, Any]:
    """Check the text that stood in a file. Raises FileError if it is missing or is not what `collect_facts` writes."""
    if not text:
        raise FileError(
            f"{file} does not say what it takes and answers, as files of `pluribus export` do: write it again with this "
            "version of pluribus"
        )
    return parse_record(text, ExportedRecord, f"what {file} says about itself")


def name_type(dtype: torch.dtype) -> str:
    """The name of a type as NumPy has it.

    >>> name_type(torch.float32)
    'float32'
    """
    return str(dtype).removeprefix("torch.")
