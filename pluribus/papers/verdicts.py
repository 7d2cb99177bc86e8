"""Verdicts on a paper's claims, computed from numbers by a stated rule.

reproduced                 our numbers meet the claim, with the paper's size of effect where it names one
direction reproduced       the effect points the same way, but has another size
not reproduced             the effect does not point the same way
not decided at this scale  what was measured does not meet the condition under which the claim can be judged
not run at this scale      nothing was measured that could decide
"""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Literal

Outcome = Literal["reproduced", "direction reproduced", "not reproduced", "not decided at this scale", "not run at this scale"]
OUTCOMES: tuple[Outcome, ...] = (
    "reproduced",
    "direction reproduced",
    "not reproduced",
    "not decided at this scale",
    "not run at this scale",
)


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper, and what our numbers say about it."""

    claim: str
    """What the paper says."""
    outcome: Outcome
    rule: str
    """When the claim counts as reproduced."""
    evidence: str
    """Our numbers."""


def judge_claim(claim: str, rule: str, evidence: str, met: bool, direction: bool = False) -> Verdict:
    """Return the verdict on a claim.

    Args:
        claim, rule, evidence: texts for the page.
        met: whether our numbers meet the rule.
        direction: whether at least the direction of the effect is the paper's; it counts only if the rule is not met.

    >>> judge_claim("more is better", "more by 1 or more", "0.5 more", met=False, direction=True).outcome
    'direction reproduced'
    """
    return Verdict(claim, "reproduced" if met else "direction reproduced" if direction else "not reproduced", rule, evidence)


@dataclass(frozen=True)
class Precondition:
    """A measured condition under which claims can be judged at all."""

    text: str
    """The condition, for the page."""
    evidence: str
    """What was measured."""
    met: bool

    def judge(self, verdict: Verdict) -> Verdict:
        """The verdict, with the condition in its rule; "not decided at this scale" if the condition is not met."""
        rule = f"{verdict.rule}; judged only if {self.text}"
        if self.met:
            return replace(verdict, rule=rule)
        evidence = f"{verdict.evidence}; but {self.evidence}"
        return Verdict(verdict.claim, "not decided at this scale", rule, evidence)

    def excuse(self, verdict: Verdict) -> Verdict:
        """The verdict; "not decided at this scale" in place of "not reproduced" if the condition is not met.

        For conditions of the paper's regime: an effect that shows outside of it is there, one that does not may still be.
        """
        rule = f"{verdict.rule}; if it fails, decided only if {self.text}"
        if self.met or verdict.outcome != "not reproduced":
            return replace(verdict, rule=rule)
        return Verdict(verdict.claim, "not decided at this scale", rule, f"{verdict.evidence}; and {self.evidence}")


def skip_claim(claim: str, why: str) -> Verdict:
    """Return the verdict on a claim for which nothing was measured."""
    return Verdict(claim, "not run at this scale", "", why)


def wilson_margin(share: float, rows: int, z: float = 1.96) -> float:
    """Half the width of Wilson's 95 % interval of a share that was observed on so many rows.

    >>> round(wilson_margin(0.99, 10_000), 5)
    0.00196
    """
    return z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows)) / (1 + z * z / rows)


def is_decreasing(values: list[float], slack: float = 0.0) -> bool:
    """Whether no value is above the one before it by more than `slack`.

    >>> is_decreasing([3.0, 2.0, 1.0]), is_decreasing([1.0, 2.0]), is_decreasing([1.0, 1.1], slack=0.2)
    (True, False, True)
    """
    return all(first >= second - slack for first, second in itertools.pairwise(values))


def find_lossless_share(curve: list[tuple[float, float]], rows: int) -> float:
    """Return the largest share of weights that can be given up without losing accuracy.

    Args:
        curve: pairs of (share given up, accuracy), from no share upwards.
        rows: the number of test rows.

    Returns:
        The last share before an accuracy falls below Wilson's interval of the first accuracy.

    >>> find_lossless_share([(0.0, 0.99), (0.5, 0.99), (0.9, 0.5), (0.95, 0.99)], 10_000)
    0.5
    """
    full, kept = curve[0][1], 0.0
    for share, value in curve:
        if value < full - wilson_margin(full, rows):
            break
        kept = share
    return kept


def format_percent(share: float, digits: int = 2) -> str:
    """Return a share as a percentage.

    >>> format_percent(0.1234)
    '12.34 %'
    """
    return f"{100 * share:.{digits}f} %"
