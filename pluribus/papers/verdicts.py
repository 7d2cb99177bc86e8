"""Verdicts on a paper's claims: computed from numbers by a stated rule, never typed in.

reproduced             ours meets the claim, with the paper's size of effect where it names one
direction reproduced   the effect points the same way, and its size is another
not reproduced         it does not
not run at this scale  nothing was measured that could tell
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["reproduced", "direction reproduced", "not reproduced", "not run at this scale"]
OUTCOMES: tuple[Outcome, ...] = ("reproduced", "direction reproduced", "not reproduced", "not run at this scale")


@dataclass(frozen=True)
class Verdict:
    claim: str
    """What the paper says."""
    outcome: Outcome
    rule: str
    """When it counts as reproduced."""
    evidence: str
    """What we saw."""


def verdict(claim: str, rule: str, evidence: str, met: bool, direction: bool = False) -> Verdict:
    """Reproduced if the rule is met; else the direction, if at least that is.

    >>> verdict("more is better", "more by 1 or more", "0.5 more", met=False, direction=True).outcome
    'direction reproduced'
    """
    return Verdict(claim, "reproduced" if met else "direction reproduced" if direction else "not reproduced", rule, evidence)


def not_run(claim: str, why: str) -> Verdict:
    return Verdict(claim, "not run at this scale", "", why)


def margin(share: float, rows: int, z: float = 1.96) -> float:
    """Half of a 95 % interval (Wilson's) of a share seen on so many rows.

    >>> round(margin(0.99, 10_000), 5)
    0.00196
    """
    return z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows)) / (1 + z * z / rows)


def ordered(values: list[float], slack: float = 0.0) -> bool:
    """Whether they fall (or stay, within `slack`) from the first to the last.

    >>> ordered([3.0, 2.0, 1.0]), ordered([1.0, 2.0]), ordered([1.0, 1.1], slack=0.2)
    (True, False, True)
    """
    return all(first >= second - slack for first, second in itertools.pairwise(values))


def at_no_loss(curve: list[tuple[float, float]], rows: int) -> float:
    """Of (share given up, accuracy) from none on: the largest share up to which no accuracy is below the first one's interval.

    >>> at_no_loss([(0.0, 0.99), (0.5, 0.99), (0.9, 0.5), (0.95, 0.99)], 10_000)
    0.5
    """
    full, kept = curve[0][1], 0.0
    for share, value in curve:
        if value < full - margin(full, rows):
            break
        kept = share
    return kept


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"
