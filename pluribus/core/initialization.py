"""New weights at the scale of old ones.

PyTorch knows how to initialise its own layers but not how *this* network was initialised. A draw with the mean and the
standard deviation that a parameter has now serves any scheme, any module, trained or not; a constant stays what it is. A module
of the user's own that has a method `reset_parameters()`, as PyTorch's layers have, knows better: that is called afterwards.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .errors import ConversionError


def measure_scale(weight: Tensor) -> float:
    """The root mean square. A weight matrix of zeros, as some classifiers start with, counts as 1/√fan_in: copies at a scale
    of zero would never part."""
    if weight.is_meta:  # such a network is counted, and not run
        return 1.0
    found = weight.detach().float().square().mean().sqrt().item()
    return found or (weight[0].numel() ** -0.5 if weight.dim() > 1 else 0.0)


def draw_copies(weight: Tensor, copies: int) -> Tensor:
    """`copies` independent zero-mean normal tensors with the mean square of `weight`: `[copies, *weight.shape]`."""
    return torch.randn(copies, *weight.shape, dtype=weight.dtype, device=weight.device) * measure_scale(weight)


def center(deviations: Tensor) -> Tensor:
    """Deviations `[m, …]` that add up to nothing."""
    return deviations - deviations.mean(0, keepdim=True)


def redraw_weights(module: nn.Module) -> nn.Module:
    """Draw every trainable parameter anew, in place, and forget running statistics."""
    if any(parameter.is_meta for parameter in module.parameters()):  # there is nothing to draw
        return module
    changed = False
    kept = [(e.weight, e.padding_idx) for e in module.modules() if isinstance(e, nn.Embedding) and e.padding_idx is not None]
    rows = [weight[index].detach().clone() for weight, index in kept]
    with torch.no_grad():
        for parameter in module.parameters():
            spread = parameter.std() if parameter.numel() > 1 else parameter.new_zeros(())
            if parameter.requires_grad and spread > 0:
                parameter.copy_(torch.randn_like(parameter) * spread + parameter.mean())
                changed = True
        for (weight, index), row in zip(kept, rows, strict=True):  # padding gets no gradient: it must stay what it is
            weight[index] = row
    for part in module.modules():
        if knows_its_start(part):
            part.reset_parameters()  # type: ignore[operator]
    for part in module.modules():
        frozen = any(not parameter.requires_grad for parameter in part.parameters(recurse=False))
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and not frozen:
            part.reset_running_stats()
    if not changed:
        raise ConversionError(
            f"{type(module).__name__} has no trainable parameter that varies, so its copies would be identical and never "
            "part: initialise it at random, and set requires_grad, before converting"
        )
    return module


def knows_its_start(module: nn.Module) -> bool:
    """Whether a module that is not PyTorch's own can draw its weights anew, and none of them is to stay as it is."""
    reset = getattr(module, "reset_parameters", None)
    if type(module).__module__.startswith("torch.") or not callable(reset) or has_required_arguments(reset):
        return False
    return all(parameter.requires_grad for parameter in module.parameters())


def has_required_arguments(function: Callable[..., Any]) -> bool:
    """Whether a function cannot be called without arguments."""
    takes = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return any(found.kind in takes and found.default is inspect.Parameter.empty for found in parameters)
