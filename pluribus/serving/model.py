"""The model of a server: an exported file, and its answers in the words of `pluribus predict`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import FileError
from ..data import Columns, Preparation
from ..decisions.classification import Decisions
from ..exporting import load_file
from ..runs.row_answers import format_classes, format_decided, format_intervals, format_values, join_answer, mark_not_finite

TYPES = {
    **{"uint8": torch.uint8, "int32": torch.int32, "int64": torch.int64, "bool": torch.bool},
    **{"float32": torch.float32, "float64": torch.float64, "float16": torch.float16},
}
"""The types of inputs that a server can read."""
UNUSED = ("members", "variance")
"""Outputs that no answer names: they are not computed for them, where the format allows it."""


@dataclass(frozen=True)
class ServedModel:
    """An exported file that was found to answer rows. `run` takes the tensors of B rows, in the order of the inputs.

    `columns` encode the texts and numbers of a table's row, if it was trained on one.
    """

    file: Path
    facts: dict[str, Any]
    run: Callable[[Sequence[Tensor]], dict[str, Tensor]]
    classes: tuple[str, ...]
    columns: Columns | None = None

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """Name, type and shape of each input."""
        return self.facts["inputs"]

    @property
    def takes_images(self) -> bool:
        """Whether a row is a picture in bytes: one input `[C, H, W]` with one or three channels."""
        first = self.inputs[0]
        return len(self.inputs) == 1 and first["type"] == "uint8" and len(first["shape"]) == 3 and first["shape"][0] in (1, 3)

    def answer(self, rows: Sequence[Tensor]) -> list[dict[str, Any]]:
        """Answer B rows: one dictionary for each, with the keys and words of `pluribus predict --json`."""
        found = self.run(rows)
        return format_labels(found, self.classes) if self.facts["task"] == "classification" else format_targets(self, found)


def open_model(file: Path, trust: bool = False, threads: int | None = None) -> ServedModel:
    """Read an exported file and run it on two rows of zeros. Raises FileError if it does not answer them as it says it does."""
    loaded = load_file(file, trust, threads)
    facts = loaded.facts
    for each in facts["inputs"]:
        if each["type"] not in TYPES:
            raise FileError(f"{file} takes {each['name']} as {each['type']}: a server reads {', '.join(TYPES)}")
    wanted = [name for name in facts["outputs"] if name not in UNUSED]
    zeros = [torch.zeros((2, *each["shape"]), dtype=TYPES[each["type"]]) for each in facts["inputs"]]
    try:
        found = loaded.run(zeros, wanted)
    except Exception as error:  # whatever the file's operations make of it
        raise FileError(f"{file} cannot be run: {str(error).strip().splitlines()[0]}") from error
    classes = check_answers(file, facts, found)
    columns = None
    if facts["preparation"] is not None:
        preparation = Preparation.from_json(facts["preparation"])
        columns = preparation if isinstance(preparation, Columns) else None
    return ServedModel(file, facts, lambda rows: loaded.run(rows, wanted), classes, columns)


def check_answers(file: Path, facts: dict[str, Any], found: dict[str, Tensor]) -> tuple[str, ...]:
    """The names of the classes. Raises FileError unless two rows got one label or one value each, in the expected shapes."""
    if facts["task"] == "regression":
        levels = len(facts["quantiles"])
        shapes = {"mean": [2, 1], "spread": [2, 1], "noise": [2, 1], "quantiles": [2, levels, 1], "interval": [2, 2, 1]}
    else:
        count = found["probs"].shape[-1] if "probs" in found else 0
        names = tuple(facts["classes"]) or tuple(map(str, range(count)))
        shapes = {name: [2, len(names)] for name in ("probs", "set")}
        shapes |= {name: [2] for name in ("label", "entropy", "mutual_information", "answered", "foreign")}
    needed = ("mean", "spread") if facts["task"] == "regression" else ("probs", "label", "entropy", "mutual_information")
    for name in (*needed, *found):
        shape = list(found[name].shape) if name in found else None
        if shape != shapes.get(name, []):
            got = "no such output" if shape is None else f"the shape {shape} for two rows"
            raise FileError(
                f"{file} must answer {name} with the shape {shapes.get(name)} for two rows, got {got}: a server answers rows "
                "that have one label, or one value, each"
            )
    return () if facts["task"] == "regression" else names


def format_labels(found: dict[str, Tensor], classes: Sequence[str]) -> list[dict[str, Any]]:
    """The answers of a classification, and what its rules say."""
    probs, labels = found["probs"], found["label"]
    confidence = probs.amax(1)
    answers = map(
        mark_not_finite,
        format_classes((labels, confidence, found["entropy"], found["mutual_information"]), probs, classes),
    )
    decided = Decisions(labels, confidence, found.get("set"), found.get("answered"), found.get("foreign"))
    if decided.sets is None and decided.is_answered is None and decided.is_foreign is None:
        return list(answers)
    return [join_answer(*each) for each in zip(answers, format_decided(decided, classes), strict=True)]


def format_targets(model: ServedModel, found: dict[str, Tensor]) -> list[dict[str, Any]]:
    """The answers of a regression with their intervals."""
    levels = model.facts["quantiles"]
    quantiles = found["quantiles"].flatten(1).tolist() if levels else []
    answers = [*map(mark_not_finite, format_values(found["mean"], found["spread"], found.get("noise"), levels, quantiles))]
    interval = found.get("interval")
    ends = [{}] * len(answers) if interval is None else format_intervals(interval[:, 0], interval[:, 1])
    return [join_answer(*each) for each in zip(answers, ends, strict=True)]
