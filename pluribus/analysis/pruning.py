"""Pruning of random weights: the weights that matter least become exactly zero, or exactly their mean.

    score_ij < threshold   →   w_ij = 0  (mean and σ)       or       w_ij = μ_ij  (σ alone)

Any score can be used. `standard_deviations`, σ_ij, is the score of Neklyudov et al., ICLR 2019, figure 5, where zeroing 98 %
of a variance layer loses nothing; |κ| of `curvature` is the score of the earlier version of the paper, section 6.4.

A pruned ensemble is meant for predictions: further training may move its weights away from zero, and its penalty is still that
of random weights. A linear layer that is mostly zeros also predicts faster, see `core.random_weights`.
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
    """Return a copy in which the random weights with the lowest scores are pruned.

    Args:
        ensemble: An ensemble with random weights. It is not changed.
        scores: For each layer to prune, by name, a score for every weight, as `standard_deviations` returns them. Signed scores
            are used as they are: pass the absolute value of κ.
        threshold: Prune all weights that score less than this, or …
        share: … prune this share of all weights that have scores, from 0 to 1; among equal scores the first weights go first.
        to: What a pruned weight becomes: "zero", or its "mean".

    Raises:
        ValueError: There are no random weights, the scores do not fit them, or not exactly one of threshold and share came.

    >>> import pluribus
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 5), pluribus.Variance(include="*"))
    >>> sparsity(prune(ensemble, standard_deviations(ensemble), share=0.75)), sparsity(ensemble)
    ({'': 0.75}, {'': 0.0})
    """
    require_choice("to", to, ("zero", "mean"))
    check_scores(list_random_layers(ensemble), scores)
    if (threshold is None) == (share is None):
        raise ValueError(f"give either threshold= or share=, got threshold={threshold} and share={share}")
    masks = select_lowest(scores, share) if threshold is None else {name: score < threshold for name, score in scores.items()}
    pruned = copy.deepcopy(ensemble)
    layers = list_random_layers(pruned)
    for name, mask in masks.items():
        layers[name].prune(mask.to(layers[name].mu.device), to)
    return pruned


@torch.no_grad()
def standard_deviations(ensemble: Ensemble) -> dict[str, Tensor]:
    """Return σ of every random weight by the name of its layer, in the shape of the weights.

    >>> import pluribus
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 5), pluribus.Variance(include="*"))
    >>> {name: sigma.shape for name, sigma in standard_deviations(ensemble).items()}
    {'': torch.Size([5, 4])}
    """
    return {name: layer.variance().sqrt() for name, layer in list_random_layers(ensemble).items()}


def sparsity(ensemble: Ensemble) -> dict[str, float]:
    """The share of weights whose mean and σ are exactly zero, by the name of the layer."""
    return {name: compute_share(layer.find_zeros()) for name, layer in list_random_layers(ensemble).items()}


def select_lowest(scores: Mapping[str, Tensor], part: float | None) -> dict[str, Tensor]:
    """Return masks of the scores that belong to the lowest part of all scores."""
    if part is None or not 0 <= part <= 1:
        raise ValueError(f"share must be from 0 to 1, got {part}: it is the part of the weights to prune")
    every = torch.cat([score.detach().flatten().double().cpu() for score in scores.values()])
    mask = torch.zeros(len(every), dtype=torch.bool)
    mask[every.argsort(stable=True)[: round(part * len(every))]] = True
    pieces = mask.split([score.numel() for score in scores.values()])
    return {name: piece.view(score.shape) for (name, score), piece in zip(scores.items(), pieces, strict=True)}


def list_random_layers(ensemble: Ensemble) -> dict[str, RandomWeights]:
    """Return the layers with random weights by name; raises ValueError if there is none."""
    layers = find_random_layers(ensemble.net)
    if not layers:
        raise ValueError(f"there must be a layer with random weights, got none in {type(ensemble.spec).__name__}: try Variance")
    return layers


def check_scores(layers: Mapping[str, RandomWeights], scores: Mapping[str, Tensor]) -> None:
    """Raise ValueError if scores do not fit the layers."""
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
