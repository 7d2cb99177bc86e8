"""How near a regression comes, and how well its spread tells by how much it misses.

The ensemble's answer is a Gaussian with the members' mean and their variance, plus a noise variance that the caller may know
(of validation residuals, say): members that agree say nothing about noise in the data.

    NLL  = ½ log 2πσ² + (y − μ)² / 2σ²
    CRPS = σ [ z (2Φ(z) − 1) + 2φ(z) − 1/√π ],   z = (y − μ) / σ

Gneiting & Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation", 2007, eq. 21 (with the sign turned: smaller is
better).
"""

import math

import torch
from torch import Tensor

from ..core.predictive import Predictive

TINY = 1e-12


def rmse(p: Predictive, targets: Tensor) -> float:
    """The root of the mean squared error of the members' mean."""
    return (p.mean - targets.view_as(p.mean)).double().square().mean().sqrt().item()


def gaussian_nll(p: Predictive, targets: Tensor, noise: float = 0.0) -> float:
    return gaussian_terms(p, targets, noise)[0].mean().item()


def crps(p: Predictive, targets: Tensor, noise: float = 0.0) -> float:
    """The continuous ranked probability score, in the units of the targets; of one member without noise, its absolute error."""
    return gaussian_terms(p, targets, noise)[1].mean().item()


def gaussian_terms(p: Predictive, targets: Tensor, noise: float = 0.0) -> tuple[Tensor, Tensor]:
    """The NLL and the CRPS of every answer, in its shape."""
    mean, variance = _gaussian(p, noise)
    std = variance.sqrt()
    z = (targets.view_as(p.mean).double() - mean) / std
    density = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    score = std * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))
    return 0.5 * (2 * math.pi * variance).log() + z.square() / 2, score


def coverage(p: Predictive, targets: Tensor, share: float = 0.95, noise: float = 0.0) -> float:
    """How many targets lie in the central interval that should hold `share` of them."""
    return coverages(p, targets, share, noise).double().mean().item()


def coverages(p: Predictive, targets: Tensor, share: float = 0.95, noise: float = 0.0) -> Tensor:
    """Which of them do."""
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    mean, variance = _gaussian(p, noise)
    reach = math.sqrt(2) * torch.erfinv(torch.tensor(share, dtype=torch.double)) * variance.sqrt()
    return (targets.view_as(p.mean).double() - mean).abs() <= reach


def fitted_noise(p: Predictive, targets: Tensor) -> float:
    """The variance of the noise that the members do not explain, by these rows, which must be validation rows.

    E (y − μ)² = noise + E variance, where the members' spread is what it says; never below zero.
    """
    errors = (targets.view_as(p.mean).double() - p.mean.double()).square().mean()
    return max((errors - p.variance.double().mean()).item(), 0.0)


def _gaussian(p: Predictive, noise: float) -> tuple[Tensor, Tensor]:
    if noise < 0:
        raise ValueError(f"noise is a variance, and must not be negative, got {noise}")
    values = p.members.double()  # in single precision, members that are equal have a variance far above TINY
    return values.mean(0), (values.var(0, correction=0) + noise).clamp_min(TINY)
