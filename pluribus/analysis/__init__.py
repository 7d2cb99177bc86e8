"""Properties of an ensemble beyond its scores.

- accuracy and NLL against the share of members that are asked (`anytime`): `trace_anytime`, `AnytimePoint`
- adversarial robustness (`attacks`): `attack`, `Attack`, `Outcome`
- how members differ: `disagreement`, `normalised_disagreement`, `pairwise_kl`, `error_correlation`, `bias_variance`
- cost as ratios to the base network (`cost`): `compare_cost`, `Cost`
- removing random weights (`pruning`): `prune`, `standard_deviations`, `sparsity`
- which random weights could be replaced by their mean (`curvature`): `kappa`
- whether a network has room for members that share its body (`room`): `measure_room`, `Room`
- whether members use units of their own (`separation`): `measure_separation`, `Separation`
- networks between members (`weight_plane`): `map_weight_plane`, `map_weight_line`
- members in the space of predictions during training (`trajectories`): `Trajectories`
- how large responses of random networks are with inner ensembles, dropout or maxout (`variance_responses`): `LayerResponse`,
  `list_printed_gains`, `compute_maximum_moments`, `compute_variance_gain`, `trace_variances`,
  `build_random_network`, `sample_response_variance`
- what activations pass on, and initial weights of inner ensembles (`activation_gains`): `compute_activation_gain`,
  `expand_activation_gain`, `compute_torch_gain`, `compute_copy_variance`, `initialize_copies_`
- every score of `metrics` in one pass over the rows (`scores`): `create_scores`
"""

from .activation_gains import (
    ACTIVATIONS,
    compute_activation_gain,
    compute_copy_variance,
    compute_torch_gain,
    expand_activation_gain,
    initialize_copies_,
)
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
from .normal_quadrature import compute_maximum_moments
from .pruning import prune, sparsity, standard_deviations
from .room import Room, measure_room
from .scores import create_scores
from .separation import Separation, measure_separation
from .trajectories import Trajectories
from .variance_responses import (
    LayerResponse,
    PrintedGains,
    SampledVariance,
    build_random_network,
    compute_variance_gain,
    list_printed_gains,
    sample_response_variance,
    trace_variances,
)
from .weight_plane import WeightLine, WeightPlane, map_weight_line, map_weight_plane

__all__ = [
    "ACTIVATIONS",
    "AnytimePoint",
    "Attack",
    "BiasVariance",
    "Cost",
    "LayerResponse",
    "Outcome",
    "PrintedGains",
    "Room",
    "SampledVariance",
    "Separation",
    "Trajectories",
    "WeightLine",
    "WeightPlane",
    "attack",
    "bias_variance",
    "build_random_network",
    "compare_cost",
    "compute_activation_gain",
    "compute_copy_variance",
    "compute_maximum_moments",
    "compute_torch_gain",
    "compute_variance_gain",
    "create_scores",
    "disagreement",
    "error_correlation",
    "expand_activation_gain",
    "initialize_copies_",
    "kappa",
    "list_printed_gains",
    "map_weight_line",
    "map_weight_plane",
    "measure_room",
    "measure_separation",
    "normalised_disagreement",
    "pairwise_kl",
    "prune",
    "sample_response_variance",
    "sparsity",
    "standard_deviations",
    "trace_anytime",
    "trace_variances",
]
