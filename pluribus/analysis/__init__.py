"""What an ensemble is like beyond its scores: how it falls to attacks, how members differ, what it costs, which random weights
matter."""

from .attacks import Attack, Outcome, attack
from .cost import Cost, compare_cost
from .curvature import kappa
from .densities import by_class, response
from .discrepancy import mmd, mmd_bound, prediction_bound
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
    "by_class",
    "compare_cost",
    "disagreement",
    "error_correlation",
    "kappa",
    "mmd",
    "mmd_bound",
    "normalised_disagreement",
    "pairwise_kl",
    "prediction_bound",
    "prune",
    "response",
    "sparsity",
    "standard_deviations",
]
