"""Anytime answers: members are asked one after the other, until each row has an answer that is sure enough.

    k(x) = the least k with max_c (1/k) Σ_{m<k} p_m(c | x) ≥ until, and M if there is none

A row that is sure stops, and the others go on. Its answer is the mean over its first k members.

Work is counted in forward passes of one member over one row. What members share (all layers before they part) runs in every
step again, and is counted as often. If it is a share s > ½ of a member's work, a step asks s / (1 − s) members at once, so that
no more than half of its work is repeated. Where that is all of them, nothing can be saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import pytrees
from .execution import Step
from .prediction import RunningSums, split_rows
from .predictive import PredictiveSummary
from .row_buffer import RowBuffer

if TYPE_CHECKING:
    from .ensemble import Ensemble


@dataclass(frozen=True, eq=False, kw_only=True)
class AnytimePredictive(PredictiveSummary):
    """Averages over the first `used` members of each row: `ensemble.predict(x, until=0.95)`.

    `used` is `[B]`, and `count` the most members that a row may use. `saved` is the share of the work of all members that was
    not done: it counts forward passes, not seconds. It is negative if work that members share was repeated for nothing.
    """

    used: Tensor
    saved: float


def predict_until(
    ensemble: "Ensemble", x: Any, until: float, batch_size: int | None = None, chosen: Sequence[int] | None = None
) -> AnytimePredictive:
    """Ask members one after the other for a batch, or for all batches of a loader: see `Answering.predict`."""
    if ensemble.task != "classification":
        raise ValueError(f"until= compares the probability of a class, and this is a {ensemble.task}: leave it out")
    if ensemble.batch_axis is None:
        raise ensemble.refuse("early answer", "its input is one whole, of which no row can stop before the others")
    expected, buffers, done, whole, count = pytrees.count_all_rows(x), dict[str, RowBuffer](), 0.0, 0.0, 0
    for chunk, twin in split_rows(ensemble, x, batch_size, chosen):
        steps = ensemble.executor.list_steps(twin)
        if len(steps) == 1:
            raise ensemble.refuse("early answer", explain_single_step(twin, steps[0]))
        answers, work = answer_rows(ensemble, steps, chunk, until)
        done, count = done + work, twin.members
        whole += ensemble.executor.measure_work(twin) * pytrees.count_rows(chunk)
        for name, values in answers.items():
            buffer = buffers.setdefault(name, RowBuffer(0, expected))
            buffer.take_rows(values.shape, values).copy_(values)
    found = {name: buffer.get_rows() for name, buffer in buffers.items()}
    used = found.pop("used")
    saved = 1 - done / whole if whole else 0.0
    return AnytimePredictive(count, found, ensemble.task, class_axis=ensemble.class_axis, used=used, saved=saved)


def answer_rows(ensemble: "Ensemble", steps: list[Step], chunk: Any, until: float) -> tuple[dict[str, Tensor], float]:
    """The averages of every row and the members that it `used`, by name, and the work that was done."""
    answers: dict[str, Tensor] = {}
    sums, work, rows = RunningSums(ensemble.task), 0.0, pytrees.count_rows(chunk)
    waiting = torch.arange(rows)
    for number, step in enumerate(steps):
        part = chunk if len(waiting) == rows else take_rows(ensemble, chunk, waiting)
        for group in step.members.executor.split(step.members):
            sums.add(ensemble.interpret(group(part)))
        work += step.work * len(waiting)
        averages = sums.compute_averages()
        averages["used"] = torch.full((len(waiting),), sums.count, device=averages["log_probs"].device)
        sure = find_sure_rows(averages["log_probs"], until)
        if number == len(steps) - 1:
            sure = torch.ones_like(sure)
        place = waiting.to(sure.device)[sure]
        for name, values in averages.items():
            answers.setdefault(name, values.new_empty(rows, *values.shape[1:]))[place] = values[sure]
        waiting = waiting[~sure.cpu()]
        if len(waiting) == 0:
            break
        sums.keep_rows(~sure)
    return answers, work


def find_sure_rows(log_probs: Tensor, until: float) -> Tensor:
    """Which rows of `[B, C, …]` reach the confidence, at all their places if they have several, `[B]`."""
    confidence = log_probs.exp().amax(1)
    return (confidence if confidence.dim() == 1 else confidence.flatten(1).amin(1)) >= until


def take_rows(ensemble: "Ensemble", chunk: Any, rows: Tensor) -> Any:
    """Some rows of a chunk, in the memory layout that the ensemble takes fastest."""
    return ensemble.executor.lay_out(pytrees.map_tensors(lambda leaf: leaf[rows.to(leaf.device)], chunk))


def explain_single_step(twin: "Ensemble", step: Step) -> str:
    """Why nothing can be saved."""
    if twin.members == 1:
        return "one member answers, and there is none to leave out; call predict(x)"
    return (
        f"all {twin.members} members together take {step.work:.2f} times the work of one, because they share the rest: asking "
        "fewer would save next to nothing; call predict(x)"
    )
