"""What an ensemble is like beyond its scores: how it falls to attacks, how members differ, what it costs, which random weights
matter."""

from .attacks import Attack, Outcome, attack
from .cost import Cost, compare_cost
from .curvature import kappa
from .diversity import (
    BiasVariance,
    bias_variance,
    disagreement,
    error_correlation,
    normalised_disagreement,
    pairwise_kl,
)
from .pruning import prune, sparsity, standard_deviations

__all__ = [
    "Attack",
    "BiasVariance",
    "Cost",
    "Outcome",
    "attack",
    "bias_variance",
    "compare_cost",
    "disagreement",
    "error_correlation",
    "kappa",
    "normalised_disagreement",
    "pairwise_kl",
    "prune",
    "sparsity",
    "standard_deviations",
]
