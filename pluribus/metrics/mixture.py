"""Scores of a regression as the mixture of its members' Gaussians; `regression.py` takes one Gaussian instead.

Member m predicts N(μ_m, σ_m²), where σ_m² is the noise that it predicts plus a noise variance that the caller may know:

    NLL  = −log (1/M) Σ_m N(y; μ_m, σ_m²)
    CRPS = (1/M) Σ_m A(y − μ_m, σ_m²) − (1/2M²) Σ_m Σ_k A(μ_m − μ_k, σ_m² + σ_k²)

with A(d, v) = E|d + √v Z| = 2 √v φ(d/√v) + d (2Φ(d/√v) − 1) for a standard normal Z.

Grimit et al., "The continuous ranked probability score for circular variables and its application to mesoscale forecast
ensemble verification", 2006.
"""

import math

import torch
from torch import Tensor

from ..core.predictive import Predictive
from .regression import TINY, require_noise


def mixture_nll(p: Predictive, targets: Tensor, noise: float = 0.0) -> float:
    """The mean negative log-likelihood of the targets under the mixtures.

    Args: a regression's prediction `[M, B, …]`; `targets` `[B, …]`; `noise` is a variance that is added to the members'.
    Raises: ValueError if the noise is negative.

    >>> p = Predictive(torch.tensor([[[0.0, 1.0]]]), "regression", has_noise=True)  # N(0, 1)
    >>> round(mixture_nll(p, torch.tensor([0.0])), 4)  # ½ log 2π
    0.9189
    """
    mean, variance = _fit_members(p, noise)
    square = (targets.view_as(mean[0]).double() - mean).square()
    log_density = -0.5 * (2 * math.pi * variance).log() - square / (2 * variance)
    return (math.log(len(mean)) - log_density.logsumexp(0)).mean().item()


def mixture_crps(p: Predictive, targets: Tensor, noise: float = 0.0) -> float:
    """The continuous ranked probability score of the mixtures, in the units of the targets; arguments as of `mixture_nll`.

    >>> p = Predictive(torch.tensor([[[-1.0]], [[1.0]]]), "regression")  # half of the mass at −1 and half at 1
    >>> round(mixture_crps(p, torch.tensor([0.0])), 4)
    0.5
    """
    mean, variance = _fit_members(p, noise)
    error = measure_absolute(targets.view_as(mean[0]).double() - mean, variance).mean(0)
    spread = torch.zeros_like(error)
    for own_mean, own_variance in zip(mean, variance, strict=True):  # one member at a time: M² tensors would not fit
        spread += measure_absolute(own_mean - mean, own_variance + variance).sum(0)
    return (error - spread / (2 * len(mean) ** 2)).mean().item()


def measure_absolute(distance: Tensor, variance: Tensor) -> Tensor:
    """E|d + √v Z| for a standard normal Z."""
    std = variance.sqrt()
    z = distance / std
    return distance * torch.erf(z / math.sqrt(2)) + 2 * std * (-z.square() / 2).exp() / math.sqrt(2 * math.pi)


def _fit_members(p: Predictive, noise: float) -> tuple[Tensor, Tensor]:
    """Mean and variance of each member's Gaussian, `[M, B, …]` each."""
    require_noise(noise)
    return p.members.double(), (p.member_noise.double() + noise).clamp_min(TINY)
