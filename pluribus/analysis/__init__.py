"""Properties of an ensemble beyond its scores.

- accuracy and NLL against the share of members that are asked (`anytime`): `trace_anytime`, `AnytimePoint`
- adversarial robustness (`attacks`): `attack`, `Attack`, `Outcome`
- how members differ: `disagreement`, `normalised_disagreement`, `pairwise_kl`, `error_correlation`, `bias_variance`
- cost as ratios to the base network (`cost`): `compare_cost`, `Cost`
- removing random weights (`pruning`): `prune`, `standard_deviations`, `sparsity`
- which random weights could be replaced by their mean (`curvature`): `kappa`
- whether members use units of their own (`separation`): `measure_separation`, `Separation`
- networks between members (`weight_plane`): `map_weight_plane`, `map_weight_line`
- members in the space of predictions during training (`trajectories`): `Trajectories`
- every score of `metrics` in one pass over the rows (`scores`): `create_scores`
"""

from .anytime import AnytimePoint, trace_anytime
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
from .separation import Separation, measure_separation
from .trajectories import Trajectories
from .weight_plane import WeightLine, WeightPlane, map_weight_line, map_weight_plane

__all__ = [
    "AnytimePoint",
    "Attack",
    "BiasVariance",
    "Cost",
    "Outcome",
    "Separation",
    "Trajectories",
    "WeightLine",
    "WeightPlane",
    "attack",
    "bias_variance",
    "compare_cost",
    "create_scores",
    "disagreement",
    "error_correlation",
    "kappa",
    "map_weight_line",
    "map_weight_plane",
    "measure_separation",
    "normalised_disagreement",
    "pairwise_kl",
    "prune",
    "sparsity",
    "standard_deviations",
    "trace_anytime",
]
