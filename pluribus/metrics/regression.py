"""Scores of regressions: the error of the mean, and how well the predicted spread matches the errors.

The prediction is a Gaussian with the members' mean and the whole variance (the noise that they predict and their spread), plus
a noise variance that the caller may know. Members that predict no noise say nothing about it where they agree, so that it has
to be fitted (on validation residuals, for example). `mixture.py` has the scores of the members' mixture.

    NLL  = ½ log 2πσ² + (y − μ)² / 2σ²
    CRPS = σ [ z (2Φ(z) − 1) + 2φ(z) − 1/√π ],   z = (y − μ) / σ

Gneiting & Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation", 2007, eq. 21 (with the opposite sign, so that
smaller is better).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary

TINY = 1e-12
LEVELS = tuple(number / 20 for number in range(1, 20))
"""Of the intervals whose calibration is shown: 5 %, 10 %, … 95 %."""


def rmse(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """The root of the mean squared error of the members' mean.

    Args: a regression's prediction `[M, B, …]`; `targets` `[B, …]`.

    >>> rmse(Predictive(torch.tensor([[[1.0], [2.0]], [[3.0], [2.0]]]), "regression"), torch.tensor([2.0, 4.0]))  # √(4/2)
    1.4142135623730951
    """
    return (p.mean - targets.view_as(p.mean)).double().square().mean().sqrt().item()


def gaussian_nll(p: Predictive | PredictiveSummary, targets: Tensor, noise: float = 0.0) -> float:
    """The mean negative log-likelihood of the targets under the predicted Gaussians.

    Args: a regression's prediction `[M, B, …]`; `targets` `[B, …]`; `noise` is a variance that is added to the members'.
    Raises: ValueError if the noise is negative.

    >>> p = Predictive(torch.tensor([[[-1.0]], [[1.0]]]), "regression")  # mean 0, variance 1
    >>> round(gaussian_nll(p, torch.tensor([0.0])), 4)  # ½ log 2π
    0.9189
    """
    return gaussian_terms(p, targets, noise)[0].mean().item()


def crps(p: Predictive | PredictiveSummary, targets: Tensor, noise: float = 0.0) -> float:
    """The continuous ranked probability score, in the units of the targets.

    For one member without noise it is the absolute error. Arguments and errors are those of `gaussian_nll`.

    >>> p = Predictive(torch.tensor([[[1.0]]]), "regression")
    >>> round(crps(p, torch.tensor([3.0])), 4)
    2.0
    """
    return gaussian_terms(p, targets, noise)[1].mean().item()


def gaussian_terms(p: Predictive | PredictiveSummary, targets: Tensor, noise: float = 0.0) -> tuple[Tensor, Tensor]:
    """The NLL and the CRPS of every target, each in the shape of the members' mean, `[B, …]`."""
    mean, variance = _fit_gaussian(p, noise)
    std = variance.sqrt()
    z = (targets.view_as(p.mean).double() - mean) / std
    density = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    score = std * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))
    return 0.5 * (2 * math.pi * variance).log() + z.square() / 2, score


def coverage(p: Predictive | PredictiveSummary, targets: Tensor, share: float = 0.95, noise: float = 0.0) -> float:
    """The share of the targets that lie in the central prediction interval, which should hold `share` of them.

    Args: those of `gaussian_nll`; `share` between 0 and 1. Raises: ValueError if the share or the noise makes no sense.

    >>> p = Predictive(torch.tensor([[[-1.0], [-1.0]], [[1.0], [1.0]]]), "regression")  # the interval is ±1.96
    >>> coverage(p, torch.tensor([1.9, 2.0]))
    0.5
    """
    return coverage_terms(p, targets, share, noise).mean().item()


def coverage_terms(p: Predictive | PredictiveSummary, targets: Tensor, share: float = 0.95, noise: float = 0.0) -> Tensor:
    """1 for every target inside the prediction interval and 0 for the others, `[B, …]`; NaN where the answer is not finite."""
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    mean, variance = _fit_gaussian(p, noise)
    inside = (targets.view_as(p.mean).double() - mean).abs() <= find_reach(share) * variance.sqrt()
    return inside.double().masked_fill(~mean.isfinite() | ~variance.isfinite(), torch.nan)


def find_reach(share: float) -> float:
    """How many standard deviations to either side of its mean hold a share of a Gaussian.

    >>> round(find_reach(0.95), 3)
    1.96
    """
    return math.sqrt(2) * torch.erfinv(torch.tensor(share, dtype=torch.double)).item()


def width(p: Predictive | PredictiveSummary, share: float = 0.95, noise: float = 0.0) -> float:
    """The mean width of the central prediction intervals, in the units of the targets. Arguments are those of `coverage`.

    >>> p = Predictive(torch.tensor([[[-1.0]], [[1.0]]]), "regression")
    >>> round(width(p), 2)
    3.92
    """
    return width_terms(p, share, noise).mean().item()


def width_terms(p: Predictive | PredictiveSummary, share: float = 0.95, noise: float = 0.0) -> Tensor:
    """The width of every central prediction interval, `[B, …]`."""
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    return 2 * find_reach(share) * _fit_gaussian(p, noise)[1].sqrt()


def interval_calibration(
    p: Predictive | PredictiveSummary, targets: Tensor, noise: float = 0.0, levels: Sequence[float] = LEVELS
) -> list[float]:
    """The share of the targets inside the central prediction interval of each level, which should be the level itself.

    >>> p = Predictive(torch.tensor([[[-1.0]], [[1.0]]]), "regression")
    >>> interval_calibration(p, torch.tensor([1.0]), levels=[0.6, 0.7])  # 68 % lie within one standard deviation
    [0.0, 1.0]
    """
    mean, variance = _fit_gaussian(p, noise)
    distance = (targets.view_as(p.mean).double() - mean).abs() / variance.sqrt()
    if not bool(distance.isfinite().all()):
        return [math.nan] * len(levels)
    return [(distance <= find_reach(level)).double().mean().item() for level in levels]


def fit_noise_variance(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """Estimate the variance of the noise that the members do not explain, from these rows, which must be validation rows.

    E (y − μ)² = noise + E variance holds if the members' spread is calibrated. The estimate is never below zero.

    >>> fit_noise_variance(Predictive(torch.zeros(1, 2, 1), "regression"), torch.tensor([1.0, -1.0]))
    1.0
    """
    errors = (targets.view_as(p.mean).double() - p.mean.double()).square().mean()
    return max((errors - p.variance.double().mean()).item(), 0.0)


def require_noise(noise: float) -> None:
    """Raise ValueError if a variance of the noise is negative."""
    if noise < 0:
        raise ValueError(f"noise is a variance, and must not be negative, got {noise}")


def _fit_gaussian(p: Predictive | PredictiveSummary, noise: float) -> tuple[Tensor, Tensor]:
    """Mean and variance of the predicted Gaussians, `[B, …]` each."""
    require_noise(noise)
    if isinstance(p, Predictive):  # in single precision, members that are equal have a variance far above TINY
        p = replace(p, outputs=p.outputs.double())
    return p.mean.double(), (p.variance.double() + noise).clamp_min(TINY)
