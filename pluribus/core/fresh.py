"""New weights at the scale of old ones.

PyTorch knows how to initialise its own layers but not how *this* network was initialised. A draw with the mean and the
standard deviation that a parameter has now serves any scheme, any module, trained or not; a constant stays what it is.
"""

import torch
from torch import Tensor, nn

from .errors import ConversionError


def draws(weight: Tensor, copies: int) -> Tensor:
    """`copies` independent zero-mean normal tensors with the mean square of `weight`: `[copies, *weight.shape]`.

    A weight matrix of zeros, as some classifiers start with, would make copies that never part: it counts as 1/√fan_in.
    """
    scale = weight.detach().square().mean().sqrt()
    if weight.dim() > 1 and scale == 0:
        scale = scale + weight[0].numel() ** -0.5
    return torch.randn(copies, *weight.shape, dtype=weight.dtype, device=weight.device) * scale


def centred(deviations: Tensor) -> Tensor:
    """Deviations `[m, …]` that add up to nothing."""
    return deviations - deviations.mean(0, keepdim=True)


def redraw(module: nn.Module) -> nn.Module:
    """Draw every trainable parameter anew, in place, and forget running statistics."""
    changed = False
    with torch.no_grad():
        for parameter in module.parameters():
            spread = parameter.std() if parameter.numel() > 1 else parameter.new_zeros(())
            if parameter.requires_grad and spread > 0:
                parameter.copy_(torch.randn_like(parameter) * spread + parameter.mean())
                changed = True
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.reset_running_stats()
    if not changed:
        raise ConversionError(
            f"{type(module).__name__} has no trainable parameter that varies, so its copies would be identical and never "
            "part: initialise it at random, and set requires_grad, before converting"
        )
    return module
