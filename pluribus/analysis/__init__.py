"""What an ensemble is like beyond its scores: how it falls to attacks, how its members differ, what it costs."""

from .attacks import Attack, Outcome, attack
from .cost import Cost, cost
from .diversity import (
    BiasVariance,
    bias_variance,
    disagreement,
    error_correlation,
    normalised_disagreement,
    pairwise_kl,
)

__all__ = [
    "Attack",
    "BiasVariance",
    "Cost",
    "Outcome",
    "attack",
    "bias_variance",
    "cost",
    "disagreement",
    "error_correlation",
    "normalised_disagreement",
    "pairwise_kl",
]
