"""Gradients that are scaled on their way back."""

from typing import Any

import torch
from torch import Tensor


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.factor, None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return `x` itself; its gradient is multiplied by `factor`.

    This changes the steps of SGD, and not those of Adam, which divides every gradient by its own size.

    >>> x = torch.ones(2, requires_grad=True)
    >>> (3 * scale_gradient(x, 0.5)).sum().backward()
    >>> x.grad
    tensor([1.5000, 1.5000])
    """
    return x if factor == 1.0 or not torch.is_grad_enabled() else _ScaledGradient.apply(x, factor)
