"""KL divergences of a Gaussian weight w ~ N(μ, σ²), α = σ²/μ², from the priors of variational dropout.

    log-uniform, p(w) ∝ 1/|w|:    KL = C − ½ log α + E log|1 + √α ε|                                       (eq. 8)
    Student-t(ν):                 KL = −½ log(2πe σ²) − log Z_ν + (ν+1)/2 · E log(1 + w²/ν)                (eq. 10)
    ARD, p(w) = N(0, (1+α) μ²):   KL = ½ log(1 + 1/α)                                     (eq. 11, which lacks the ½)

The log-uniform prior is improper, so its constant is free: C = ½(γ + log 2) makes KL vanish as α → ∞. All decrease in α.
For μ = 0 the first and the last do not depend on σ.

Neklyudov et al., ICLR 2019, section 4.2; the approximation is Molchanov et al., 2017, eq. 14.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

K1, K2, K3 = 0.63576, 1.87320, 1.48695
EULER = 0.5772156649015329
LOG_UNIFORM_CONSTANT = 0.5 * (EULER + math.log(2))
"""−E log|ε|, ε ~ N(0, 1)."""


def kl_log_uniform(log_alpha: Tensor) -> Tensor:
    """Within 0.01 of the truth for every α.

    >>> kl_log_uniform(torch.tensor([-8.0, 0.0, 2.0]))
    tensor([4.6359, 0.4312, 0.0684])
    """
    return K1 - K1 * torch.sigmoid(K2 + K3 * log_alpha) + 0.5 * F.softplus(-log_alpha)


def estimate_kl_log_uniform(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """An unbiased estimate from one draw ε a weight."""
    weight = mean + (0.5 * log_variance).exp() * noise
    return LOG_UNIFORM_CONSTANT - 0.5 * log_variance + 0.5 * safe_log(weight.square())


def estimate_kl_student_t(mean: Tensor, log_variance: Tensor, nu: float, noise: Tensor) -> Tensor:
    """An unbiased estimate from one draw ε a weight. A proper prior: the constant belongs to it."""
    square = (mean + (0.5 * log_variance).exp() * noise).square()
    log_normaliser = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    # log(1 + w²/ν) = log(ν + w²) − log ν: w²/ν overflows for the tiny ν of the paper.
    log_ratio = (square + max(nu, torch.finfo(square.dtype).tiny)).log() - math.log(nu)
    return -0.5 * (math.log(2 * math.pi * math.e) + log_variance) - log_normaliser + 0.5 * (nu + 1) * log_ratio


def kl_ard(log_alpha: Tensor) -> Tensor:
    return 0.5 * F.softplus(-log_alpha)


def safe_log(square: Tensor) -> Tensor:
    """The logarithm of a square or a variance, finite at zero and there without a gradient."""
    return square.clamp_min(torch.finfo(square.dtype).tiny).log()
