"""What the tables and figures measure of a trained network, and paired intervals between two of them.

A cell keeps NLL and errors of the test rows in blocks of equal size, always the same rows in the same block. The difference of
two methods is that of the same blocks and the same seeds; its interval draws seeds and blocks anew, with replacement.
"""

import itertools
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from ..analysis.diversity import disagreement
from ..core.predictive import Predictive
from ..data.corruptions import SEVERITIES, STANDARD
from ..file_formats.schema import Finite, NotNegative, Schema, Share
from ..metrics.calibration import apply_temperature, ece
from ..metrics.classification import accuracy, find_correct
from ..metrics.temperature import calibrated_nll
from ..runs.evaluation_case import EvaluationCase
from ..runs.robustness import corrupt_once
from .recipe import Json
from .trained_runs import Trained

BLOCKS = 50
DRAWS = 2000
Blocks = Annotated[list[Finite], Field(min_length=1, max_length=BLOCKS)]


class Scores(Schema):
    """Scores on the test rows; NLL and errors by block; the mean scores of a member, and how often two disagree."""

    accuracy: Share
    nll: NotNegative
    ece: Share
    calibrated_nll: NotNegative
    nll_blocks: Blocks
    error_blocks: Blocks
    member_accuracy: Share
    member_nll: NotNegative
    disagreement: Share


def predict_rows(trained: Trained, images: Tensor, temperature: float | None = None) -> Predictive:
    """The answer to images as they were read, at a temperature."""
    answer = trained.ensemble.predict(trained.data.preparation(images))
    return answer if temperature is None else apply_temperature(answer, temperature)


def measure_scores(trained: Trained, temperature: float | None = None) -> Json:
    """The scores of a trained ensemble on its test rows, as `Scores` has them; members are scored as they are."""
    plain, y = trained.ensemble.predict(trained.x), trained.y
    answer = plain if temperature is None else apply_temperature(plain, temperature)
    rows = answer.nll(y).double()
    wrong = 1 - find_correct(answer, y).double()
    members = [Predictive(each.unsqueeze(0)) for each in plain.outputs]
    return {
        "accuracy": accuracy(answer, y),
        "nll": rows.mean().item(),
        "ece": ece(answer, y),
        "calibrated_nll": calibrated_nll(plain, y),
        "nll_blocks": average_blocks(rows.numpy()),
        "error_blocks": average_blocks(wrong.numpy()),
        "member_accuracy": float(np.mean([accuracy(member, y) for member in members])),
        "member_nll": float(np.mean([member.nll(y).mean().item() for member in members])),
        "disagreement": disagreement(plain),
    }


def measure_corrupted(trained: Trained, count: int, kinds: int = len(STANDARD), temperature: float | None = None) -> Json:
    """Means over the first `kinds` standard corruptions of `count` test rows: cAcc, cNLL, cECE; NLL and errors by block."""
    case = EvaluationCase(trained.ensemble, trained.data, trained.data.test)
    part = case.sample_rows(count)
    found: dict[str, list[float]] = {"accuracy": [], "ece": []}
    nll, wrong = torch.zeros(2, len(part), dtype=torch.double)
    for kind, severity in itertools.product(STANDARD[:kinds], SEVERITIES):
        answer = predict_rows(trained, corrupt_once(part.x, kind, severity), temperature)
        found["accuracy"].append(accuracy(answer, part.y))
        found["ece"].append(ece(answer, part.y))
        nll += answer.nll(part.y).double() / (kinds * len(SEVERITIES))
        wrong += (1 - find_correct(answer, part.y).double()) / (kinds * len(SEVERITIES))
    return {
        "cacc": float(np.mean(found["accuracy"])),
        "cnll": nll.mean().item(),
        "cece": float(np.mean(found["ece"])),
        "cnll_blocks": average_blocks(nll.numpy()),
        "cerror_blocks": average_blocks(wrong.numpy()),
    }


def average_blocks(rows: np.ndarray) -> list[float]:
    """The means of consecutive rows in at most 50 blocks of equal size; rows that are left over are left out.

    >>> average_blocks(np.arange(100.0))[:3]
    [0.5, 2.5, 4.5]
    """
    count = min(BLOCKS, len(rows))
    return rows[: len(rows) // count * count].reshape(count, -1).mean(1).tolist()


class Difference(NamedTuple):
    """The mean difference of two methods with its interval, at 95 % unless another level is asked for."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def compare_cells(ours: Sequence[Json], theirs: Sequence[Json], key: str = "nll_blocks", level: float = 0.95) -> Difference:
    """The mean of ours − theirs, paired by seed and block, with its interval at a level.

    >>> cells = [{"nll_blocks": [1.0, 2.0]}, {"nll_blocks": [1.5, 2.5]}]
    >>> compare_cells(cells, cells)
    Difference(value=0.0, low=0.0, high=0.0)
    """
    paired = np.array([np.subtract(a[key], b[key]) for a, b in zip(ours, theirs, strict=True)])
    rng = np.random.default_rng(0)
    seeds = rng.integers(len(paired), size=(DRAWS, len(paired), 1))
    blocks = rng.integers(paired.shape[1], size=(DRAWS, 1, paired.shape[1]))
    low, high = np.quantile(paired[seeds, blocks].mean((1, 2)), [(1 - level) / 2, (1 + level) / 2])
    return Difference(float(paired.mean()), float(low), float(high))
