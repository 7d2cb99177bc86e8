"""Properties of an ensemble beyond its scores.

attacks     Attack, attack, Outcome: adversarial robustness
diversity   disagreement, normalised_disagreement, pairwise_kl, error_correlation, bias_variance: how members differ
cost        compare_cost, Cost: parameters, FLOPs, memory and latency, as ratios to the base network
pruning     prune, standard_deviations, sparsity: removing random weights
curvature   kappa: which random weights could be replaced by their mean
scores      create_scores: every score of `metrics` in one pass over the rows
"""

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
from .scores import create_scores

__all__ = [
    "Attack",
    "BiasVariance",
    "Cost",
    "Outcome",
    "attack",
    "bias_variance",
    "compare_cost",
    "create_scores",
    "disagreement",
    "error_correlation",
    "kappa",
    "normalised_disagreement",
    "pairwise_kl",
    "prune",
    "sparsity",
    "standard_deviations",
]
