"""Pruning of random weights: those that matter least become exactly zero, or exactly their mean.

    score_ij < threshold   →   w_ij = 0  (mean and σ)       or       w_ij = μ_ij  (σ alone)

The score is the user's. `standard_deviations`, σ_ij, is the score of Neklyudov et al., ICLR 2019, figure 5, where zeroing 98 %
of a variance layer loses nothing; |κ| of `curvature` is the score of the earlier version of the paper, section 6.4.

A pruned ensemble is for answers: training goes on from its numbers, and may move them, and its penalty is that of random
weights. A linear layer that is mostly zeros also answers faster, see `core.random_weights`.
"""

import copy
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.random_weights import RandomWeights, compute_share, find_random_layers
from ..core.spec import require_choice


def prune(
    ensemble: Ensemble,
    scores: Mapping[str, Tensor],
    *,
    threshold: float | None = None,
    share: float | None = None,
    to: Literal["zero", "mean"] = "zero",
) -> Ensemble:
    """A copy without the random weights that score less than `threshold`, or without the `share` that scores least.

    `scores` has a number for every weight of the layers to prune, by name, as `standard_deviations` has; the share is of all
    of them together, and among equal scores the first go first. Signed scores are taken as they are: pass the absolute
    value of κ.

    >>> import pluribus
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 5), pluribus.Variance(include="*"))
    >>> sparsity(prune(ensemble, standard_deviations(ensemble), share=0.75)), sparsity(ensemble)
    ({'': 0.75}, {'': 0.0})
    """
    require_choice("to", to, ("zero", "mean"))
    check_scores(list_random_layers(ensemble), scores)
    if (threshold is None) == (share is None):
        raise ValueError(f"give threshold= or share=, one of them, got threshold={threshold} and share={share}")
    which = select_lowest(scores, share) if threshold is None else {name: score < threshold for name, score in scores.items()}
    pruned = copy.deepcopy(ensemble)
    layers = list_random_layers(pruned)
    for name, mask in which.items():
        layers[name].prune(mask.to(layers[name].mu.device), to)
    return pruned


@torch.no_grad()
def standard_deviations(ensemble: Ensemble) -> dict[str, Tensor]:
    """σ of every random weight, by layer."""
    return {name: layer.variance().sqrt() for name, layer in list_random_layers(ensemble).items()}


def sparsity(ensemble: Ensemble) -> dict[str, float]:
    """The share of weights that are exactly zero, mean and σ, by layer with random weights."""
    return {name: compute_share(layer.zeros()) for name, layer in list_random_layers(ensemble).items()}


def select_lowest(scores: Mapping[str, Tensor], part: float | None) -> dict[str, Tensor]:
    """Which scores are among this part of all of them."""
    if part is None or not 0 <= part <= 1:
        raise ValueError(f"share must be from 0 to 1, got {part}: it is the part of the weights that goes")
    every = torch.cat([score.detach().flatten().double().cpu() for score in scores.values()])
    mask = torch.zeros(len(every), dtype=torch.bool)
    mask[every.argsort(stable=True)[: round(part * len(every))]] = True
    pieces = mask.split([score.numel() for score in scores.values()])
    return {name: piece.view(score.shape) for (name, score), piece in zip(scores.items(), pieces, strict=True)}


def list_random_layers(ensemble: Ensemble) -> dict[str, RandomWeights]:
    """The layers with random weights."""
    layers = find_random_layers(ensemble.net)
    if not layers:
        raise ValueError(f"there must be a layer with random weights, got none in {type(ensemble.spec).__name__}: try Variance")
    return layers


def check_scores(layers: Mapping[str, RandomWeights], scores: Mapping[str, Tensor]) -> None:
    known = ", ".join(map(repr, layers))
    if not scores:
        raise ValueError(f"scores must name a layer, got none: there are {known}")
    for name, score in scores.items():
        if name not in layers:
            raise ValueError(f"scores must name layers with random weights, got {name!r}: there are {known}")
        shape = layers[name].mu.shape
        if score.shape != shape:
            raise ValueError(f"{name} must have a score for each of its weights, {list(shape)}, got {list(score.shape)}")
        if score.isnan().any():
            raise ValueError(f"scores must be numbers, got {int(score.isnan().sum())} nan in {name}")
