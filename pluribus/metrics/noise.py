"""Calibrated NLL of a regression: its noise variance is fitted on other rows than it is scored on.

    NLL_n(row) = ½ log 2π(v + n) + (y − μ)² / 2(v + n),      n from a grid of log n

v is the spread of the members, n the variance of the noise. What a temperature is to a classification, the noise variance is to
a regression: one number that the network does not answer and that changes its likelihood by far more than methods do. It is
cross-fitted on random halves of the rows, as temperatures are (`temperature.py`).

Members that predict the noise themselves have a variance v that can be too large as well as too small. Its one number is a
factor: NLL_t(row) = ½ log 2πtv + (y − μ)² / 2tv.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from .regression import TINY
from .temperature import SPLITS, cross_fit_nll

LOG_NOISES = torch.arange(-80, 21, dtype=torch.double) * 0.1
"""log n of the grid, `[G]`, relative to the mean squared error: the members' spread explains the part that n does not."""
NEUTRAL = 80
LOG_FACTORS = torch.arange(-50, 51, dtype=torch.double) * 0.1
"""log t of the grid, `[G]`: a variance may be 150 times too small or too large."""
NO_FACTOR = 50


def nll_at_noises(square: Tensor, variance: Tensor) -> Tensor:
    """The Gaussian NLL of every row at every noise variance of the grid.

    Args: `square` `[N, C]`, the squared errors of the mean; `variance` `[N, C]`, the variance of the members.
    Returns: `[N, G]` in double precision, the mean over the C outputs. The grid is relative to the mean of `square`.

    >>> table = nll_at_noises(torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1))  # the mean squared error is 2
    >>> round(table[:, NEUTRAL].mean().item(), 4)  # ½ log 4π + ½
    1.7655
    """
    square, variance = square.double(), variance.double()
    scale = max(square[square.isfinite()].mean().nan_to_num().item(), TINY)
    table = square.new_empty(len(square), len(LOG_NOISES))
    for place, log_noise in enumerate(LOG_NOISES.tolist()):
        whole = variance + scale * math.exp(log_noise)
        table[:, place] = (0.5 * (2 * math.pi * whole).log() + square / (2 * whole)).mean(1)
    return table


def nll_at_factors(square: Tensor, variance: Tensor) -> Tensor:
    """The Gaussian NLL of every row at every factor of the grid by which its variance is multiplied.

    Args: `square` `[N, C]`, the squared errors of the mean; `variance` `[N, C]`, the whole variance.
    Returns: `[N, G]` in double precision, the mean over the C outputs.

    >>> table = nll_at_factors(torch.tensor([[1.0]]), torch.ones(1, 1))
    >>> round(table[0, NO_FACTOR].item(), 4)  # ½ log 2π + ½
    1.4189
    """
    square, variance = square.double(), variance.double().clamp_min(TINY)
    relative, level = (square / variance).mean(1, keepdim=True), 0.5 * (2 * math.pi * variance).log().mean(1, keepdim=True)
    factors = LOG_FACTORS.to(square.device)
    return level + 0.5 * factors + relative / (2 * factors.exp())


def calibrated_gaussian_nll(p: Predictive | PredictiveSummary, targets: Tensor, splits: int = SPLITS, seed: int = 0) -> float:
    """The mean NLL of a regression at noise variances, or factors of it, that are cross-fitted on halves of these rows.

    Args: a regression's prediction of B rows; `targets` `[B, …]`. Returns: nats, smaller is better.

    >>> errors = torch.tensor([-2.0, 2.0] * 50)
    >>> round(calibrated_gaussian_nll(Predictive(torch.zeros(1, 100, 1), "regression"), errors), 3)  # ½ log 2π·4 + ½
    2.112
    """
    if isinstance(p, Predictive):  # in single precision, members that are equal have a variance above zero
        p = replace(p, outputs=p.outputs.double())
    square = (targets.view_as(p.mean).double() - p.mean).square().flatten(1)
    if p.has_noise:
        return cross_fit_nll(nll_at_factors(square, p.variance.flatten(1)), splits, seed, NO_FACTOR).mean().item()
    return cross_fit_nll(nll_at_noises(square, p.variance.flatten(1)), splits, seed, NEUTRAL).mean().item()
