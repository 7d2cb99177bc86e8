"""The model card of an exported file: what it takes, what it answers, what was checked, and how to call it."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..file_formats.digests import digest_file

CALLS = {
    "onnx": """import numpy, onnxruntime

session = onnxruntime.InferenceSession("{file}")
answers = session.run(None, {{{feeds}}})
print(dict(zip([output.name for output in session.get_outputs()], answers)))""",
    "torch": """import torch

program = torch.export.load("{file}").module()
print(program({tensors}))""",
}


def format_card(facts: Mapping[str, Any], file: Path, draft: Path, kind: str, difference: float) -> str:
    """The model card in Markdown, of the facts in the file (`facts.py`). `draft` is the file before it is named `file`."""
    members, inputs = facts["members"], facts["inputs"]
    lines = [
        f"# {facts['title']}",
        "",
        f"`{file.name}`, {draft.stat().st_size:,} bytes, {digest_file(draft)}",
        "",
        f"- Method: `{facts['method']}`, {members} member{'s' if members > 1 else ''}"
        + (", their draws fixed when the file was written" if facts["has_fixed_draws"] else ""),
        f"- Parameters: {facts['parameters']:,}",
    ]
    if facts["classes"]:
        lines.append(f"- Classes, in the order of `probs`: {', '.join(facts['classes'])}")
    lines += [
        f"- Written with torch {facts['torch']}, Python {platform.python_version()}",
        "",
        "## What it takes",
        "",
        "| input | type | shape, B rows |",
        "|---|---|---|",
        *(f"| `{each['name']}` | {each['type']} | {['B', *each['shape']]} |".replace("'", "") for each in inputs),
        "",
        "## What it answers",
        "",
        "| output | meaning |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in facts["outputs"].items()),
        "",
    ]
    if facts["rules"]:
        lines += ["## Rules", "", *(f"- {sentence}" for sentence in facts["rules"]), ""]
    lines += [
        "## What was checked",
        "",
        f"On 1, 7 and 64 rows the file answers as the ensemble does, to {difference:.1g}"
        + (" in units of the targets' spread." if facts["task"] == "regression" else "."),
        *(f"\n{note}" for note in facts["notes"]),
        "",
        "## How to call it",
        "",
        "```python",
        format_call(kind, file, inputs),
        "```",
        "",
    ]
    return "\n".join(lines)


def format_call(kind: str, file: Path, inputs: Sequence[Mapping[str, Any]]) -> str:
    """A few lines of Python that run the file on rows of zeros."""
    shapes = [(each["name"], (2, *each["shape"]), each["type"]) for each in inputs]
    feeds = ", ".join(f'"{name}": numpy.zeros({shape}, "{dtype}")' for name, shape, dtype in shapes)
    tensors = ", ".join(f"torch.zeros({shape}, dtype=torch.{dtype})" for _, shape, dtype in shapes)
    return CALLS[kind].format(file=file.name, feeds=feeds, tensors=tensors)
