"""What an ensemble is like beyond its scores: how it falls to attacks, and how its members differ."""

from .attacks import Attack, Outcome, attack
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
    "Outcome",
    "attack",
    "bias_variance",
    "disagreement",
    "error_correlation",
    "normalised_disagreement",
    "pairwise_kl",
]
