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
    mean, variance = _gaussian(p, noise)
    errors = targets.view_as(p.mean).double() - mean
    return (0.5 * (2 * math.pi * variance).log() + errors.square() / (2 * variance)).mean().item()


def crps(p: Predictive, targets: Tensor, noise: float = 0.0) -> float:
    """The continuous ranked probability score, in the units of the targets; of one member without noise, its absolute error."""
    mean, variance = _gaussian(p, noise)
    std = variance.sqrt()
    z = (targets.view_as(p.mean).double() - mean) / std
    density = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    return (std * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))).mean().item()


def coverage(p: Predictive, targets: Tensor, share: float = 0.95, noise: float = 0.0) -> float:
    """How many targets lie in the central interval that should hold `share` of them."""
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    mean, variance = _gaussian(p, noise)
    reach = math.sqrt(2) * torch.erfinv(torch.tensor(share, dtype=torch.double)) * variance.sqrt()
    return ((targets.view_as(p.mean).double() - mean).abs() <= reach).double().mean().item()


def _gaussian(p: Predictive, noise: float) -> tuple[Tensor, Tensor]:
    if noise < 0:
        raise ValueError(f"noise is a variance, and must not be negative, got {noise}")
    return p.mean.double(), (p.variance.double() + noise).clamp_min(TINY)
