"""What the tables and figures measure of a trained network, and paired intervals between two of them.

A cell keeps NLL and errors of the test rows in blocks of equal size, always the same rows in the same block. The difference of
two methods is that of the same blocks and the same seeds; its interval draws seeds and blocks anew, with replacement.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from ...analysis.diversity import disagreement
from ...core.predictive import Predictive
from ...file_formats.schema import Finite, NotNegative, Schema, Share
from ...metrics.calibration import ece
from ...metrics.classification import accuracy, find_correct
from ...metrics.temperature import calibrated_nll
from ..recipe import Json
from .trainings import Trained

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


def measure_scores(trained: Trained) -> Json:
    """The scores of a trained ensemble on its test rows, as `Scores` has them."""
    answer, y = trained.ensemble.predict(trained.x), trained.y
    rows = answer.nll(y).double()
    wrong = 1 - find_correct(answer, y).double()
    members = [Predictive(each.unsqueeze(0)) for each in answer.outputs]
    return {
        "accuracy": accuracy(answer, y),
        "nll": rows.mean().item(),
        "ece": ece(answer, y),
        "calibrated_nll": calibrated_nll(answer, y),
        "nll_blocks": average_blocks(rows.numpy()),
        "error_blocks": average_blocks(wrong.numpy()),
        "member_accuracy": float(np.mean([accuracy(member, y) for member in members])),
        "member_nll": float(np.mean([member.nll(y).mean().item() for member in members])),
        "disagreement": disagreement(answer),
    }


def average_blocks(rows: np.ndarray) -> list[float]:
    """The means of consecutive rows in at most 50 blocks of equal size; rows that are left over are left out.

    >>> average_blocks(np.arange(100.0))[:3]
    [0.5, 2.5, 4.5]
    """
    count = min(BLOCKS, len(rows))
    return rows[: len(rows) // count * count].reshape(count, -1).mean(1).tolist()


class Difference(NamedTuple):
    """The mean difference of two methods with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def compare_cells(ours: Sequence[Json], theirs: Sequence[Json], key: str = "nll_blocks") -> Difference:
    """The mean of ours − theirs, paired by seed and block.

    >>> cells = [{"nll_blocks": [1.0, 2.0]}, {"nll_blocks": [1.5, 2.5]}]
    >>> compare_cells(cells, cells)
    Difference(value=0.0, low=0.0, high=0.0)
    """
    paired = np.array([np.subtract(a[key], b[key]) for a, b in zip(ours, theirs, strict=True)])
    rng = np.random.default_rng(0)
    seeds = rng.integers(len(paired), size=(DRAWS, len(paired), 1))
    blocks = rng.integers(paired.shape[1], size=(DRAWS, 1, paired.shape[1]))
    low, high = np.quantile(paired[seeds, blocks].mean((1, 2)), [0.025, 0.975])
    return Difference(float(paired.mean()), float(low), float(high))
