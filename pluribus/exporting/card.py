"""The model card of an exported file: what it takes, what it answers, what was checked, and how to call it."""

import platform
from collections.abc import Sequence
from pathlib import Path

import torch

from ..core.describe import count_parameters
from ..core.ensemble import Ensemble
from ..file_formats.digests import digest_file
from .program import MEANINGS, Program

CALLS = {
    "onnx": """import numpy, onnxruntime

session = onnxruntime.InferenceSession("{file}")
answers = session.run(None, {{{feeds}}})
print(dict(zip([output.name for output in session.get_outputs()], answers)))""",
    "torch": """import torch

program = torch.export.load("{file}").module()
print(program({tensors}))""",
}
NUMPY = {torch.uint8: "uint8", torch.float32: "float32", torch.float64: "float64", torch.int64: "int64"}


def format_card(
    program: Program,
    ensemble: Ensemble,
    file: Path,
    draft: Path,
    kind: str,
    inputs: Sequence[tuple[str, torch.dtype, list[int]]],
    difference: float,
    classes: Sequence[str] = (),
    title: str = "",
    notes: Sequence[str] = (),
) -> str:
    """The model card in Markdown. `draft` is the file before it is named `file`; `inputs` have name, type and a row's shape."""
    members = ensemble.count_members(training=False)
    lines = [
        f"# {title or file.stem}",
        "",
        f"`{file.name}`, {draft.stat().st_size:,} bytes, {digest_file(draft)}",
        "",
        f"- Method: `{ensemble.spec}`, {members} member{'s' if members > 1 else ''}"
        + (", their draws fixed when the file was written" if ensemble.is_frozen else ""),
        f"- Parameters: {count_parameters(program.network):,}",
    ]
    if classes:
        lines.append(f"- Classes, in the order of `probs`: {', '.join(classes)}")
    lines += [
        f"- Written with torch {torch.__version__}, Python {platform.python_version()}",
        "",
        "## What it takes",
        "",
        "| input | type | shape, B rows |",
        "|---|---|---|",
        *(f"| `{name}` | {name_type(dtype)} | {['B', *shape]} |".replace("'", "") for name, dtype, shape in inputs),
        "",
        "## What it answers",
        "",
        "| output | meaning |",
        "|---|---|",
        *(f"| `{name}` | {MEANINGS[name]} |" for name in program.names),
        "",
    ]
    if program.rules is not None:
        lines += ["## Rules", "", *(f"- {sentence}" for sentence in program.rules.explain()), ""]
    lines += [
        "## What was checked",
        "",
        f"On 1, 7 and 64 rows the file answers as the ensemble does, to {difference:.1g}"
        + (" in units of the targets' spread." if ensemble.task == "regression" else "."),
        *(f"\n{note}" for note in notes),
        "",
        "## How to call it",
        "",
        "```python",
        format_call(kind, file, inputs),
        "```",
        "",
    ]
    return "\n".join(lines)


def format_call(kind: str, file: Path, inputs: Sequence[tuple[str, torch.dtype, list[int]]]) -> str:
    """A few lines of Python that run the file on rows of zeros."""
    feeds = ", ".join(f'"{name}": numpy.zeros({(2, *shape)}, "{name_type(dtype)}")' for name, dtype, shape in inputs)
    tensors = ", ".join(f"torch.zeros({(2, *shape)}, dtype={dtype})" for _, dtype, shape in inputs)
    return CALLS[kind].format(file=file.name, feeds=feeds, tensors=tensors)


def name_type(dtype: torch.dtype) -> str:
    """The name of a type as NumPy has it."""
    return NUMPY.get(dtype, str(dtype).removeprefix("torch."))
