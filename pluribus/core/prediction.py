"""How an ensemble answers many rows: chunk by chunk, by groups of members where these are many, into memory taken once.

The outputs of all members are written into one tensor as they come. Where members are not needed, sums over them are kept for
the chunk at hand, and averages for every row. Both ways run the same chunks and groups, so they draw the same noise.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import pytrees
from .execution import count_rows
from .modes import get_evaluation_copy
from .predictive import Predictive, PredictiveSummary, Task
from .row_buffer import RowBuffer
from .votes import compute_disagreement, count_votes

if TYPE_CHECKING:
    from .ensemble import Ensemble


def predict_members(
    ensemble: "Ensemble", x: Any, batch_size: int | None = None, chosen: Sequence[int] | None = None
) -> Predictive:
    """The outputs of all members, or of those that are `chosen`, for a batch, or for all batches of a loader."""
    if not pytrees.is_loader(x):
        size, twin = prepare_copy(ensemble, x, batch_size, chosen)
        groups = ensemble.executor.split(twin)
        if len(groups) == 1 and count_rows(ensemble, x) <= size:
            return ensemble.interpret(groups[0](ensemble.executor.lay_out(x)))
    buffer = RowBuffer(1, count_expected(ensemble, x))
    for chunk, twin in split_rows(ensemble, x, batch_size, chosen):
        groups = ensemble.executor.split(twin)
        sizes = [group.members for group in groups]
        for number, group in enumerate(groups):
            outputs = group(chunk)
            if len(outputs) != sizes[number]:
                raise ValueError(f"the ensemble must answer for each of {sizes[number]} members, got {len(outputs)} answers")
            if number == 0:
                parts = buffer.take_rows((sum(sizes), *outputs.shape[1:]), outputs).split(sizes)
            parts[number].copy_(outputs)
    return ensemble.interpret(buffer.get_rows())


def predict_summary(ensemble: "Ensemble", x: Any, batch_size: int | None = None) -> PredictiveSummary:
    """The averages over the members for a batch, or for all batches of a loader."""
    expected, sums = count_expected(ensemble, x), RunningSums(ensemble.task)
    buffers: dict[str, RowBuffer] = {}
    for chunk, twin in split_rows(ensemble, x, batch_size):
        sums = RunningSums(ensemble.task)
        for group in ensemble.executor.split(twin):
            sums.add(ensemble.interpret(group(chunk)))
        for name, values in sums.compute_averages().items():
            buffer = buffers.setdefault(name, RowBuffer(0, expected))
            buffer.take_rows(values.shape, values).copy_(values)
    averages = {name: buffer.get_rows() for name, buffer in buffers.items()}
    return PredictiveSummary(sums.count, averages, ensemble.task, ensemble.quantile_levels, ensemble.class_axis)


def split_rows(
    ensemble: "Ensemble", x: Any, batch_size: int | None, chosen: Sequence[int] | None = None
) -> "Iterator[tuple[Any, Ensemble]]":
    """Every chunk of rows, and a copy of the ensemble that answers it, in evaluation mode, by the `chosen` members alone.

    Raises `ValueError` if x is a loader without batches.
    """
    count = 0
    for batch in map(pytrees.leave_targets_out, x) if pytrees.is_loader(x) else [x]:
        size, twin = prepare_copy(ensemble, batch, batch_size, chosen)
        if ensemble.batch_axis is None:
            count += 1
            yield batch, twin
            continue
        for start in range(0, max(pytrees.count_rows(batch), 1), size):
            count += 1
            yield ensemble.executor.lay_out(pytrees.slice_rows(batch, start, size)), twin
    if count == 0:
        raise ValueError("a loader must yield at least one batch, got none")


def count_expected(ensemble: "Ensemble", x: Any) -> int:
    """How many rows answers will have; 0 if that is not known."""
    return 0 if ensemble.batch_axis is None else pytrees.count_all_rows(x)


def prepare_copy(ensemble: "Ensemble", x: Any, batch_size: int | None, chosen: Sequence[int] | None) -> "tuple[int, Ensemble]":
    """How many rows of a batch to answer at once, and the copy of the ensemble that answers them."""
    executor = ensemble.executor
    if executor.plan is None:
        executor.prepare(ensemble, x)
    twin = get_evaluation_copy(ensemble)
    if chosen is not None:
        twin = executor.choose(twin, chosen)
    return batch_size or executor.choose_chunk_rows(twin), twin


class RunningSums:
    """Sums over the members' answers to one chunk of rows, which come in groups of members.

    Log-probabilities are added by a stable log-sum-exp; means and squared deviations of groups are merged as by Chan et al.,
    "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """

    log_sum: Tensor  # of a classification
    entropy: Tensor
    votes: Tensor
    mean: Tensor  # of a regression
    squares: Tensor
    rest: dict[str, Tensor]  # what else it predicts, by the names of its averages

    def __init__(self, task: Task) -> None:
        self.task, self.count, self.rest = task, 0, {}

    def add(self, p: Predictive) -> None:
        """Add the answers of a group of members."""
        count = len(p.outputs)
        if self.task == "classification":
            log_probs = p.arrange_classes().member_log_probs
            log_sum, votes = log_probs.logsumexp(0), count_votes(log_probs)
            entropy = torch.special.entr(log_probs.exp_()).sum(2).sum(0)
            first = self.count == 0
            self.log_sum = log_sum if first else torch.logaddexp(self.log_sum, log_sum)
            self.entropy = entropy if first else self.entropy + entropy
            self.votes = votes if first else self.votes + votes
        else:
            averages = dict(p.summarize().averages)
            mean, squares = averages.pop("mean"), averages.pop("spread_variance") * count
            if self.count:
                total, shift = self.count + count, mean - self.mean
                squares = self.squares + squares + shift.square() * (self.count * count / total)
                mean = self.mean + shift * (count / total)
            self.mean, self.squares = mean, squares
            for name, average in averages.items():
                self.rest[name] = self.rest[name] + average * count if self.count else average * count
        self.count += count

    def keep_rows(self, which: Tensor) -> None:
        """Go on with some of the rows of a classification, which a mask `[B]` names."""
        self.log_sum, self.entropy, self.votes = self.log_sum[which], self.entropy[which], self.votes[which]

    def compute_averages(self) -> dict[str, Tensor]:
        """The averages over all members that were added, by the names that they have in a `PredictiveSummary`."""
        if self.task == "regression":
            found = {"mean": self.mean, "spread_variance": self.squares / self.count}
            return found | {name: total / self.count for name, total in self.rest.items()}
        return {
            "log_probs": self.log_sum - math.log(self.count),
            "expected_entropy": self.entropy / self.count,
            "disagreement": compute_disagreement(self.votes, self.count, self.entropy.dtype),
        }
