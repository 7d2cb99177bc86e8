"""Scores of the quantiles that the members of a regression predict.

    pinball = (1/Q) Σ_τ ρ_τ(y − q_τ),     ρ_τ(u) = max(τu, (τ − 1)u)

It is least on average where each q_τ is the quantile of that level, and its unit is that of the targets.

Koenker & Bassett, "Regression Quantiles", 1978.
"""

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from ..core.target_quantiles import compute_pinball


def pinball(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """The mean pinball loss of all quantiles, averaged over the members first.

    Args: a regression's prediction of B rows with quantiles; `targets` `[B, …]`. Raises: AttributeError if the members predict
    no quantiles.

    >>> p = Predictive(torch.tensor([[[0.0, -1.0, 2.0]]]), "regression", quantile_levels=(0.1, 0.9))
    >>> round(pinball(p, torch.tensor([3.0])), 4)  # (0.1 · 4 + 0.9 · 1) / 2
    0.65
    """
    return pinball_terms(p, targets).mean().item()


def pinball_terms(p: Predictive | PredictiveSummary, targets: Tensor) -> Tensor:
    """The pinball loss of every target, the mean over the quantiles, in the shape of the mean, `[B, …]`."""
    quantiles = p.quantiles.double()
    errors = targets.view_as(quantiles[0]).double() - quantiles
    losses = [compute_pinball(error, level) for error, level in zip(errors, p.quantile_levels, strict=True)]
    return torch.stack(losses).mean(0)
