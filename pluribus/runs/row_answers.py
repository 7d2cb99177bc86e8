"""The words in which a row is answered, for `pluribus predict` and `pluribus serve` alike: one dictionary for each row."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from ..decisions.classification import Decisions

NO_ANSWER = "the network's answer is not finite"
REGRESSION = ("value", "low", "high", "noise", "spread", "quantiles")
"""What a regression says about a row, in this order."""


def format_classes(
    columns: Sequence[Tensor], probs: Tensor, classes: Sequence[str], used: Sequence[int] = ()
) -> Iterator[dict[str, Any]]:
    """The rows of a classification.

    Args: labels, confidences, entropies and mutual informations, `[B]` each; probabilities `[B, C]`; the names of the classes;
    and how many members each row `used`, where not all of them were.
    """
    counts: Sequence[int | None] = used or [None] * len(probs)
    for label, confidence, entropy, information, count, row in zip(
        *(column.tolist() for column in columns), counts, probs.tolist(), strict=True
    ):
        yield {
            "label": classes[label],
            "confidence": confidence,
            "uncertainty": entropy,
            "mutual_information": information,
            **({} if count is None else {"members": count}),
            "probabilities": dict(zip(classes, row, strict=True)),
        }


def format_decided(decided: Decisions, classes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What the rules of a classification say about each row."""
    for row, text in enumerate(decided.describe(classes)):
        said: dict[str, Any] = {"answer": text}
        if decided.sets is not None:
            said["set"] = [classes[place] for place in decided.sets[row].nonzero().flatten().tolist()]
        if decided.is_answered is not None:
            said["answered"] = bool(decided.is_answered[row])
        if decided.is_foreign is not None:
            said["foreign"] = bool(decided.is_foreign[row])
        yield said


def format_values(
    values: Tensor,
    spreads: Tensor,
    noises: Tensor | None = None,
    levels: Sequence[float] = (),
    quantiles: Sequence[Sequence[float]] = (),
) -> Iterator[dict[str, Any]]:
    """The rows of a regression with one target: values, standard deviations, and the quantiles of these levels."""
    noise = [] if noises is None else noises.flatten().tolist()
    names = [f"{level:g}" for level in levels]
    for row, (value, spread) in enumerate(zip(values.flatten().tolist(), spreads.flatten().tolist(), strict=True)):
        more = {"noise": noise[row]} if noise else {}
        ends = {"quantiles": dict(zip(names, quantiles[row], strict=True))} if names else {}
        yield {"value": value, **more, "spread": spread, **ends}


def format_intervals(low: Tensor, high: Tensor, noises: Tensor | None = None) -> Iterator[dict[str, Any]]:
    """What the rules of a regression say about each row: both ends of its interval, and the noise where they know it."""
    noise = [] if noises is None else noises.flatten().tolist()
    for row, (first, last) in enumerate(zip(low.flatten().tolist(), high.flatten().tolist(), strict=True)):
        yield {"low": first, "high": last} | ({"noise": noise[row]} if noise else {})


def mark_not_finite(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to a row; if it is not finite, all is None but the `error`.

    >>> mark_not_finite({"value": float("nan"), "spread": 0.0})
    {'value': None, 'spread': None, 'error': "the network's answer is not finite"}
    """
    quantiles = answer.get("quantiles", {})
    if all(math.isfinite(value) for value in (*answer.values(), *quantiles.values()) if isinstance(value, float)):
        return answer
    return dict.fromkeys(answer) | ({"quantiles": dict.fromkeys(quantiles)} if quantiles else {}) | {"error": NO_ANSWER}


def join_answer(answer: dict[str, Any], decided: dict[str, Any]) -> dict[str, Any]:
    """What the members say about a row and what the rules say; of a regression first the value and its interval.

    >>> join_answer({"value": 1.0, "spread": 0.1}, {"low": 0.0, "high": 2.0, "noise": 0.4})
    {'value': 1.0, 'low': 0.0, 'high': 2.0, 'noise': 0.4, 'spread': 0.1}
    """
    if "value" not in answer:
        return answer if "error" in answer else answer | decided
    joined = answer | (dict.fromkeys(decided) if "error" in answer else decided)
    return {key: joined[key] for key in (*REGRESSION, "error") if key in joined}
