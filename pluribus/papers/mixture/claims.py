"""Rules that several tables share, and the averages that they are made of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..classification_scores import Difference, compare_cells
from ..recipe import Found, Json, Recipe, Scale
from ..verdicts import Precondition, Verdict, format_percent, judge_claim
from .measurements import Measured, measure
from .rows import BASELINE, CONTROL, THIN, list_cells

MARGIN = 0.05
"""Two methods match if the interval of their difference lies below so much of the naive ensemble's score."""


def collect(found: Found, row: str) -> list[Json]:
    """The cells of a row, by seed."""
    return [cell for name, cell in found.items() if name.rpartition(", seed")[0] == row]


def list_rows(found: Found) -> list[str]:
    return list(dict.fromkeys(name.rpartition(", seed")[0] for name in found))


def average(found: Found, row: str, key: str) -> float:
    return float(np.mean([cell[key] for cell in collect(found, row)]))


def compare_rows(found: Found, ours: str, theirs: str, key: str = "nll_blocks") -> Difference:
    return compare_cells(collect(found, ours), collect(found, theirs), key)


def require_regime(found: Found) -> Precondition:
    """The condition of the paper's regime: a baseline that has nearly converged, with capacity to spare."""
    accuracy = average(found, BASELINE, "accuracy")
    return Precondition(
        "the baseline is right on at least 93 % of the test rows (the paper's on 96 % of CIFAR-10)",
        f"the baseline is right on {format_percent(accuracy, 1)}",
        accuracy >= 0.93,
    )


def judge_better(claim: str, found: Found, ours: str, others: tuple[str, ...], key: str, score: str) -> Verdict:
    """Whether a row is better than each of some others beyond the interval."""
    gains = {row: compare_rows(found, ours, row, key) for row in others}
    return judge_claim(
        claim,
        f"{score} of {ours} below that of {' and '.join(others)} beyond the interval; direction: below",
        f"{score} against " + ", ".join(f"{row} {gain}" for row, gain in gains.items()),
        all(gain.high < 0 for gain in gains.values()),
        all(gain.value < 0 for gain in gains.values()),
    )


def judge_match(claim: str, found: Found, ours: str, theirs: str, key: str, score: str) -> Verdict:
    """Whether a row is at most 5 % worse than another one, by the upper end of the interval."""
    gain = compare_rows(found, ours, theirs, key)
    scale = float(np.mean([cell[key] for cell in collect(found, theirs)]))
    better = compare_rows(found, ours, BASELINE, key)
    return judge_claim(
        claim,
        f"{score} of {ours} at most 5 % above that of {theirs}, by the upper end of the interval; direction: {ours} is better "
        "than the baseline",
        f"{score} against {theirs} {gain}, which has {scale:.4f}; against the baseline {better}",
        gain.high <= MARGIN * scale,
        better.value < 0,
    )


def judge_control(found: Found, key: str, score: str) -> Verdict:
    """Whether a thin mixture is better than independent thin networks."""
    claim = "Not in the paper: a thin mixture is better than a naive ensemble of thin networks of as many parameters and steps."
    return judge_better(claim, found, THIN, (CONTROL,), key, score)


def tabulate(found: Found, columns: Mapping[str, str]) -> list[Json]:
    """Our rows: means over seeds, shares in percent."""
    percent = {"accuracy", "cacc", "ece", "cece"}
    return [
        {"method": row} | {key: (100 if key in percent else 1) * average(found, row, key) for key in columns if key != "method"}
        for row in list_rows(found)
    ]


def build_table(
    number: int, title: str, question: str, rows: tuple[str, ...], columns: Mapping[str, str], published: list[Json], judge: Any
) -> Recipe:
    """The recipe of one of tables 1 to 4 and 6, which measure the same of several methods."""
    data = "cifar10" if number == 1 else None
    wanted = "cifar10" if number == 1 else "cifar100"

    def judge_in_regime(found: Found) -> list[Verdict]:
        regime = require_regime(found)
        return [verdict if verdict.claim.startswith("Not in") else regime.excuse(verdict) for verdict in judge(found)]

    shown = {"method": "method", "share": "parameters, ×", **columns}
    return Recipe(
        id=f"mixture/table-{number}",
        title=title,
        question=question,
        source=f"table {number}, section {'5.3' if number == 6 else '4.1'}",
        scales={
            "smoke": Scale("100 digits, a quarter of ResNet-8, 1 epoch.", list_cells("smoke", rows)),
            "cpu": Scale(
                "The fast residual network with 32 filters on CIFAR-10, the recipe fast-sgd, 8 epochs; 500 corrupted rows; "
                "three seeds.",
                list_cells("cpu", rows),
                ("cifar10",),
                {} if number == 1 else {"CIFAR-100": "the set is not among those that can be had; CIFAR-10 stands for it"},
            ),
            "paper": Scale("WRN-28-10, 200 epochs, the published settings.", list_cells("paper", rows, data), (wanted,)),
        },
        measure=measure,
        measured=Measured,
        tabulate=lambda found: tabulate(found, shown),
        judge=judge_in_regime,
        columns=shown,
        published=published,
    )
