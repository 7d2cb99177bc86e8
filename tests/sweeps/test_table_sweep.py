"""Tables of every kind are learned by `train`, and `predict` answers for their rows as the ensemble does in Python.

The ensemble gets rows that were encoded by `tables`, independently of the library. A table may be refused with exit code 2 and
one sentence, unless it is plain.
"""

import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from hypothesis import given, note

import pluribus
from pluribus.core.errors import FileError
from pluribus.models import mlp

from . import findings
from .commands import call_command, check_manners
from .profiles import sweep
from .tables import Table, draw_tables, encode_table, list_classes, measure_column, read_numbers

TRAIN = ["train", "--quiet", "--epochs", "1", "--model", "mlp:hidden=[4]", "--method", "deep-ensemble:members=2"]
TRAIN += ["--validation", "0"]


def test_what_is_predicted_for_training_rows_is_what_the_ensemble_answers(tmp_path_factory, monkeypatch):
    ended = Counter()

    @sweep(examples=15)
    @given(draw_tables())
    def check(table):
        note(str(table))
        monkeypatch.chdir(tmp_path_factory.mktemp("table"))
        complaint = try_table(table, ended)
        findings.report(complaint, str(table))

    check()
    if not findings.is_fuzzing():  # the examples are always the same; of new ones more than half may be refused by chance
        assert ended["answered"] >= ended["refused"]  # otherwise the sweep would show little


def try_table(table: Table, ended: Counter) -> str:
    """Train on a table, predict its rows, and return what is wrong; "" if nothing is."""
    path = table.write(Path.cwd())
    if path is None:
        return ""
    answer = call_command([*TRAIN, "--data", f"{path.name}:test=0", "--out", "run"])
    trained = answer.code == 0
    if trained:
        answer = call_command(["predict", "run", path.name, "--json"])
    complaint = check_manners(answer)
    if complaint:
        return f"{'predict' if trained else 'train'}: {complaint}"
    ended["answered" if answer.code == 0 else "refused"] += 1
    if answer.code == 2:
        return f"a plain table is refused: {answer.err}" if table.is_plain else ""
    answers = [json.loads(line, parse_constant=float) for line in answer.out.splitlines()]
    return compare_answers(table, answers)


def compare_answers(table: Table, answers: list[dict]) -> str:
    """What differs between the answers of `predict` and those of the ensemble in Python."""
    x = encode_table(table)
    if not np.isfinite(x).all():
        return "cells that are infinite, or a column that is empty, got answers"
    if len(answers) != len(x):
        return f"{len(x)} rows got {len(answers)} answers"
    classes = list_classes(table)
    try:
        ensemble = pluribus.load("run/weights.safetensors", mlp(x.shape[1], len(classes) or 1, hidden=(4,))).eval()
    except FileError as error:
        return f"there must be {x.shape[1]} features and the classes {classes}: {error}"
    prediction = ensemble.predict(torch.from_numpy(x).float())
    if classes:
        return compare_labels(classes, prediction.probs.tolist(), answers)
    numbers = read_numbers(table.make_cells()[-1], table.form)
    mean, std = measure_column(numbers)
    for row, (output, found) in enumerate(zip(prediction.outputs.mean(0).flatten().tolist(), answers, strict=True)):
        expected = float(mean + Fraction(std) * Fraction(output))
        if not math.isfinite(found["value"]) or abs(found["value"] - expected) > 1e-4 * std + 4 * math.ulp(expected):
            return f"row {row}: predict answers {found['value']!r}, the ensemble {expected!r}; the targets spread by {std}"
    return ""


def compare_labels(classes: list[str], probs: list[list[float]], answers: list[dict]) -> str:
    for row, (expected, found) in enumerate(zip(probs, answers, strict=True)):
        if list(found["probabilities"]) != classes:
            return f"the classes are {list(found['probabilities'])}, and must be {classes}"
        apart = max(abs(a - b) for a, b in zip(expected, found["probabilities"].values(), strict=True))
        if not apart <= 1e-5:
            return f"row {row}: the probabilities {found['probabilities']} are {apart} from the ensemble's"
        if max(expected) - expected[classes.index(found["label"])] > 1e-5:
            return f"row {row}: the label {found['label']} is not the most probable of {found['probabilities']}"
    return ""
