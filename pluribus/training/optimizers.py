"""Optimisers, and the learning rate and the weight of the penalty as functions of the step.

These functions have no state, so that a resumed run needs none of it.
"""

import math
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ..core.affine import NORMS
from .muon import Muon, separate_convolutions
from .settings import Settings

BIASES = ("bias", "biases", "offset")
"""What biases are called in plain and in converted layers."""


def separate_biases(net: nn.Module, groups: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """Give biases and the parameters of normalisation layers groups of their own, if the settings treat them differently.

    Args:
        net: the module that the parameters of the groups belong to.
        groups: what `ensemble.param_groups()` returns.
    """
    if settings.bias_lr == 1 and settings.bias_decay:
        return groups
    found: set[int] = set()
    for module in net.modules():
        named = module.named_parameters(recurse=False)
        found |= {id(parameter) for name, parameter in named if name in BIASES or isinstance(module, NORMS)}
    result = []
    for group in groups:
        others = [parameter for parameter in group["params"] if id(parameter) not in found]
        biases = [parameter for parameter in group["params"] if id(parameter) in found]
        own = group | {"params": biases, "rate": group.get("rate", 1.0) * settings.bias_lr}
        own |= {} if settings.bias_decay else {"weight_decay": 0.0}
        result += [each for each in (group | {"params": others}, own) if each["params"]]
    return result


def separate_parameters(net: nn.Module, groups: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """Give parameters that the settings treat differently groups of their own; takes what `separate_biases` takes."""
    groups = separate_biases(net, groups, settings)
    return separate_convolutions(net, groups) if settings.optimizer == "muon" else groups


def make_optimizer(groups: list[dict[str, Any]], settings: Settings) -> Optimizer:
    """Return the optimiser that the settings ask for.

    Args:
        groups: what `separate_parameters` returns; a group's `rate` multiplies the learning rate.
    """
    rate, decay, fused = settings.rate, settings.decay, can_fuse(groups) or None
    groups = [group | ({"lr": rate * group["rate"]} if "rate" in group else {}) for group in groups]
    if settings.optimizer == "sgd":
        nesterov = settings.nesterov and settings.momentum > 0
        return torch.optim.SGD(groups, rate, settings.momentum, weight_decay=decay, nesterov=nesterov, fused=fused)
    if settings.optimizer == "muon":
        return Muon(groups, rate, settings.momentum, decay)
    if settings.optimizer == "adam":
        return torch.optim.Adam(groups, rate, (settings.beta1, 0.999), weight_decay=decay, fused=fused)
    return torch.optim.AdamW(groups, rate, (settings.beta1, 0.999), weight_decay=decay, fused=fused)


def can_fuse(groups: list[dict[str, Any]]) -> bool:
    """Return whether torch can update the parameters in one pass over memory, which takes a third of the time on a CPU.

    It cannot do so for parameters that are spread over processes or not real numbers, nor on other devices than these.
    """
    parameters = [parameter for group in groups for parameter in group["params"]]
    return all(
        type(parameter) is torch.nn.Parameter and parameter.is_floating_point() and parameter.device.type in ("cpu", "cuda")
        for parameter in parameters
    )


def compute_rate_factor(step: int, steps: int, epoch: int, settings: Settings, decay_from: float | None = None) -> float:
    """Return what the learning rate is multiplied by at a step, between 0 and 1.

    Args:
        step: steps taken so far.
        steps: steps of the whole run.
        epoch: steps of one epoch.
        decay_from: of the schedule "wsd": the epochs after which the rate begins to fall [all but the last `decay_share`].

    warm-up:  (t + 1) / w for t < w
    cosine:   ½ (1 + cos(π p)),   linear: 1 − p,   step: γ^(milestones passed),   p the part of the rest that is done
    wsd:      1, then 1 − p, p the part of the fall that is done

    >>> [compute_rate_factor(step, 4, 2, Settings(epochs=2, schedule="linear")) for step in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    """
    warm = round(settings.warmup * epoch)
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(steps - warm, 1)
    if settings.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    if settings.schedule == "linear":
        return max(1 - done, 0.0)
    if settings.schedule == "wsd":
        first = round(steps * (1 - settings.decay_share) if decay_from is None else decay_from * epoch)
        first = max(first, warm)
        return min(max((steps - step) / max(steps - first, 1), 0.0), 1.0)
    if settings.schedule == "step":
        return settings.gamma ** sum(step >= milestone * steps for milestone in settings.milestones)
    return 1.0


def compute_penalty_factor(step: int, epoch: int, settings: Settings) -> float:
    """Return what the penalty is multiplied by at a step: it rises linearly to `kl_weight` over `kl_warmup` epochs."""
    warm = round(settings.kl_warmup * epoch)
    return settings.kl_weight * (min((step + 1) / warm, 1.0) if warm else 1.0)
