"""The figures of the page, each a function of the results that answers None where there is nothing to show."""

from typing import Any

from .calibration import reliability, reliability_bins, temperature
from .cost import scores_against_cost, share_against_latency
from .curves import attack, risk_coverage, shift
from .model import Figure
from .spread import detection, diversity

FIGURES = (
    share_against_latency,
    scores_against_cost,
    reliability,
    shift,
    risk_coverage,
    diversity,
    detection,
    attack,
    temperature,
)


def figures(results: dict[str, Any]) -> list[Figure]:
    """In the order of the page."""
    return [figure for make in FIGURES if (figure := make(results)) is not None]


__all__ = ["Figure", "attack", "figures", "reliability_bins", "risk_coverage", "shift"]
