"""Optimisers, and learning rates as functions of the step: nothing to remember, so nothing to lose."""

import math
from typing import Any

import torch
from torch.optim import Optimizer

from .settings import Settings


def make_optimizer(groups: list[dict[str, Any]], settings: Settings) -> Optimizer:
    """The optimiser of the ensemble's `param_groups()`. A group's `rate` multiplies the learning rate."""
    rate, decay = settings.rate, settings.decay
    groups = [group | ({"lr": rate * group["rate"]} if "rate" in group else {}) for group in groups]
    if settings.optimizer == "sgd":
        nesterov = settings.nesterov and settings.momentum > 0
        return torch.optim.SGD(groups, rate, settings.momentum, weight_decay=decay, nesterov=nesterov)
    if settings.optimizer == "adam":
        return torch.optim.Adam(groups, rate, (settings.beta1, 0.999), weight_decay=decay)
    return torch.optim.AdamW(groups, rate, (settings.beta1, 0.999), weight_decay=decay)


def compute_rate_factor(step: int, steps: int, epoch: int, settings: Settings) -> float:
    """The learning rate at a step, as a share of its highest. `epoch` is the number of steps in one.

    warm-up:  (t + 1) / w for t < w
    cosine:   ½ (1 + cos(π p)),   linear: 1 − p,   step: γ^(milestones passed),   p the share of the rest that is done
    """
    warm = round(settings.warmup * epoch)
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(steps - warm, 1)
    if settings.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    if settings.schedule == "linear":
        return max(1 - done, 0.0)
    if settings.schedule == "step":
        return settings.gamma ** sum(step >= milestone * steps for milestone in settings.milestones)
    return 1.0


def compute_penalty_factor(step: int, epoch: int, settings: Settings) -> float:
    """What the penalty is multiplied by at a step: it rises linearly to 1 over `kl_warmup` epochs."""
    warm = round(settings.kl_warmup * epoch)
    return min((step + 1) / warm, 1.0) if warm else 1.0
