"""`pluribus.export`: write a file, run it, compare its answers with those of the ensemble, and only then keep it."""

import copy
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.files import format_json, write_file
from ..data.preparation import Preparation
from ..decisions.calibrated import CalibratedEnsemble
from .card import format_card
from .facts import collect_facts
from .formats import READERS, SUFFIXES, WRITERS, ExportError, Run
from .program import MembersTogether, Program, Rules, list_inputs, prepare_network

BATCHES = (1, 7, 64)
"""Numbers of rows that an exported file is run on, to compare its answers."""
TOLERANCE = 1e-5
"""By how much they may differ: of probabilities and entropies, and of a regression in units of its targets' spread."""


@dataclass(frozen=True)
class Exported:
    """An exported file, its model card, the names of its inputs and outputs, and by how much its answers differ at most."""

    path: Path
    card: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    difference: float


def export(
    ensemble: Ensemble | CalibratedEnsemble,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    example: Any = None,
    samples: int | None = None,
    preparation: Preparation | None = None,
    rules: Rules | None = None,
    classes: Sequence[str] = (),
    title: str = "",
    notes: Sequence[str] = (),
) -> Exported:
    """Write a file that answers as the ensemble does, for any number of rows, without pluribus.

    The answers of a classification are `probs` `[B, C]`, `label` `[B]`, `members` `[M, B, C]`, `entropy` `[B]` and
    `mutual_information` `[B]`; of a regression `mean`, `variance` and `spread` `[B, C]`, `members` `[M, B, C]`, and `noise`
    `[B, C]` where it is known. What was calibrated goes along: `set` `[B, C]`, `answered` `[B]` and `foreign` `[B]` as far as
    there are rules for them, or `interval` `[B, 2, C]`. The file is run on 1, 7 and 64 rows, and kept only if it gives the
    ensemble's answers. A model card (.md) is written beside it.

    Args:
        ensemble: a trained ensemble, or what `pluribus.calibrate` made of one.
        path: where to write. Its ending says the format: `.onnx` for ONNX, `.pt2` for `torch.export.load`.
        format: "onnx" or "torch", for other endings.
        example: a few rows as the file will get them (a tensor, a tuple or a dictionary of tensors). By default a row that the
            ensemble has seen; with a preparation there is no default.
        samples: of a method that draws, how many draws are fixed.
        preparation: how stored rows become the network's inputs, as a run folder has it. It becomes a part of the file.
        rules: what was calibrated, if `ensemble` does not bring it along.
        classes, title, notes: for the model card, and for the file itself, which says what it is (`facts.py`).

    Returns: what was written. Raises: ExportError if torch cannot trace the network or the answers differ; ValueError or
    TypeError if an argument makes no sense.

    >>> import pluribus, tempfile
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 3), pluribus.DeepEnsemble(members=2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = export(ensemble, Path(folder) / "model.pt2", example=torch.randn(8, 4))
    ...     answers = torch.export.load(written.path).module()(torch.zeros(5, 4))
    >>> dict(zip(written.outputs, (list(answer.shape) for answer in answers)))["members"]
    [2, 5, 3]
    """
    if isinstance(ensemble, CalibratedEnsemble):
        rules = ensemble.rules if rules is None else rules
        ensemble = ensemble.ensemble
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"export takes an ensemble, as pluribus.ensemble(net, spec) makes it, got {type(ensemble).__name__}")
    if ensemble.batch_axis is None:
        raise ExportError("an exported file answers any number of rows, and this network takes its input as a whole: save it")
    file = Path(path)
    kind = choose_format(file, format)
    if any(parameter.device.type != "cpu" for parameter in ensemble.parameters()):
        ensemble = copy.deepcopy(ensemble).cpu()
    rows = choose_example(ensemble, example, preparation)
    tensors, names, keys = list_inputs(rows)
    with torch.no_grad():
        ensemble.predict(prepare_rows(rows, preparation))  # finds the plan, if there is none yet
    network, fixed = prepare_network(ensemble, samples)
    program = Program(fixed, network, preparation, rules, keys).eval()
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".export-") as folder:
        draft = Path(folder) / f"draft.{'onnx' if kind == 'onnx' else 'pt2'}"
        facts = collect_facts(program, fixed, list(zip(names, tensors, strict=True)), classes, title or file.stem, notes)
        try:
            difference = write_and_compare(kind, program, fixed, rows, draft, facts)
        except ExportError:
            if not isinstance(network, MembersTogether) or not network.part_at_input():
                raise
            difference = write_and_compare(kind, program, fixed, rows, draft, facts)
        card = format_card(facts, file, draft, kind, difference)
        os.replace(draft, file)
    place = file.with_name(f"{file.name}.md")
    write_file(place, card.encode())
    return Exported(file, place, names, program.names, difference)


def write_and_compare(kind: str, program: Program, ensemble: Ensemble, rows: Any, draft: Path, facts: Any) -> float:
    """Write a file of this format with its facts, and return how far its answers are from those of the ensemble.

    Raises ExportError if it cannot be written, fails, or gives other answers.
    """
    tensors, names, _ = list_inputs(rows)
    WRITERS[kind](program, tuple(repeat_rows(each, 3) for each in tensors), names, draft, format_json(facts, indent=None))
    return compare_answers(READERS[kind](draft, names), program, ensemble, rows)


def choose_format(file: Path, asked: str | None) -> str:
    """The format of a file.

    >>> choose_format(Path("model.onnx"), None), choose_format(Path("model.bin"), "torch")
    ('onnx', 'torch')
    """
    kind = asked or SUFFIXES.get(file.suffix.lower())
    if kind not in WRITERS:
        which = f"got format={asked!r}" if asked else f"got {file.name!r}"
        raise ValueError(f"the file must end in .onnx or .pt2, or format= say onnx or torch: {which}")
    return kind


def choose_example(ensemble: Ensemble, example: Any, preparation: Preparation | None) -> Any:
    """The rows to trace the network with."""
    if example is None and preparation is None:
        example = ensemble.executor.example
    if example is None:
        raise ValueError("export needs a few rows to trace the network with: pass example=x")
    if pytrees.count_rows(example) == 0:
        raise ValueError("example must have at least one row, got none")
    return pytrees.map_tensors(lambda leaf: leaf.detach().cpu(), example)


def prepare_rows(rows: Any, preparation: Preparation | None) -> Any:
    """The network's inputs."""
    return rows if preparation is None else preparation(rows)


def repeat_rows(rows: Tensor, count: int) -> Tensor:
    """So many rows: the first ones, or all of them again and again."""
    return rows[torch.arange(count) % len(rows)]


def compare_answers(run: Run, program: Program, ensemble: Ensemble, rows: Any) -> float:
    """The largest difference between the answers of the file and those of the ensemble. Raises ExportError if it is too large.

    Of a regression differences are in units of its targets' spread, and those of variances in its square.
    """
    largest = 0.0
    for count in BATCHES:
        some = pytrees.map_tensors(lambda leaf, count=count: repeat_rows(leaf, count), rows)
        p = ensemble.predict(prepare_rows(some, program.preparation))
        with torch.no_grad():
            expected = program.answer(p.outputs)
            borderline = [each.answer(p.outputs) for each in program.shift_thresholds(TOLERANCE)]
        try:
            found = run(list_inputs(some)[0])
        except Exception as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ExportError(f"the exported file fails on {count} rows ({first}): it was not kept") from error
        for place, (name, ours, theirs) in enumerate(zip(program.names, expected, found, strict=True)):
            if not ours.is_floating_point():
                same = theirs.to(ours.dtype) == ours
                for shifted in borderline:  # a score that is its threshold, to rounding, may fall on either side
                    same |= theirs.to(ours.dtype) == shifted[place]
                if not bool(same.all()):
                    raise ExportError(
                        f"the exported file differs from the ensemble in {name}, on {count} rows: it was not kept"
                    )
                continue
            unit = measure_unit(program, name, expected[0] if name in ("spread", "noise") else ours)
            same_holes = torch.equal(ours.isfinite(), theirs.isfinite())
            apart = (ours.double() - theirs.double()).nan_to_num(0, 0, 0).abs().max().item() / unit
            if not same_holes or apart > TOLERANCE:
                how = f"by {apart:.1g}" if same_holes else "in what is finite"
                raise ExportError(
                    f"the exported file differs from the ensemble {how} in {name}, on {count} rows: it was not kept"
                )
            largest = max(largest, apart)
    return largest


def measure_unit(program: Program, name: str, values: Tensor) -> float:
    """The unit of an answer's differences: 1 for probabilities; of a regression the spread of its targets.

    Where that is not known it is the largest of the `values`, which are the means for what has their unit, or 1.
    """
    if program.task == "classification":
        return max(1.0, values.nan_to_num(0, 0, 0).abs().max().item()) if name == "entropy" else 1.0
    if program.preparation is not None and program.preparation.target != (0.0, 1.0):
        std = program.preparation.target[1]
        return std**2 if name == "variance" else std
    return max(1.0, values.nan_to_num(0, 0, 0).abs().max().item())
