"""BatchNorm over the rows of all processes.

    μ = Σ_r n_r μ_r / n,    σ² = Σ_r (n_r σ_r² + n_r (μ_r − μ)²) / n,    n = Σ_r n_r        over the processes r
    ∂L/∂x = γ/σ (∂L/∂y − mean(∂L/∂y) − x̂ mean(x̂ ∂L/∂y)),    means over the rows of all processes

Torch's own `SyncBatchNorm` runs on GPUs only. Here a function takes the place of `F.batch_norm` while a step runs, so that no
module and no state dict changes.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable


@contextmanager
def synchronize_batch_norm() -> Iterator[None]:
    """Inside the block, BatchNorm in training mode takes its statistics over all processes."""
    plain, functional = F.batch_norm, cast(Any, F)

    @functools.wraps(plain)
    def batch_norm(
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        if training:
            return normalize(input, running_mean, running_var, weight, bias, momentum, eps)
        return plain(input, running_mean, running_var, weight, bias, training, momentum, eps)

    # Not a mode of torch for functions: none is in force where gradient checkpointing computes layers again.
    functional.batch_norm = batch_norm
    try:
        yield
    finally:
        functional.batch_norm = plain


def normalize(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    """`F.batch_norm` in training, with the statistics of all processes' rows. All processes must call it together."""
    precise = torch.promote_types(x.dtype, torch.float)
    mean, var, count = gather_statistics(x.detach().to(precise))
    if count < 2:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(x.shape)} in all processes"
        )
    with torch.no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            running_var.lerp_((var * count / (count - 1)).to(running_var.dtype), momentum)
    answer: Tensor = _Normalize.apply(x, weight, bias, mean, var, count, eps)
    return answer


def gather_statistics(x: Tensor) -> tuple[Tensor, Tensor, int]:
    """Mean and variance of every channel of `[B, C, …]`, and the number of values in a channel, over all processes."""
    axes = [axis for axis in range(x.dim()) if axis != 1]
    var, mean = torch.var_mean(x, axes, correction=0)
    own = torch.cat([mean, var, mean.new_tensor([x.numel() // x.shape[1]])])
    found = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(found, own)
    means, variances, counts = torch.stack(found).split([len(mean), len(mean), 1], dim=1)
    count = counts.sum()
    mean = (counts * means).sum(0) / count
    var = (counts * (variances + (means - mean).square())).sum(0) / count
    return mean, var, int(count)


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, count: int, eps: float
    ) -> Tensor:
        ctx.save_for_backward(x, weight, bias, mean, var)
        ctx.count, ctx.eps = count, eps
        weight, bias = (part if part is None else part.to(mean.dtype) for part in (weight, bias))
        answer: Tensor = cast(Any, torch).batch_norm(x.to(mean.dtype), weight, bias, mean, var, False, 0.0, eps, False)
        return answer.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        x, weight, bias, mean, var = ctx.saved_tensors
        axes = [axis for axis in range(x.dim()) if axis != 1]
        shape = [1, -1, *(1 for _ in axes[1:])]
        scale = (var + ctx.eps).rsqrt()
        whitened, own = (x.to(mean.dtype) - mean.view(shape)) * scale.view(shape), dy.to(mean.dtype)
        sums = torch.stack([own.sum(axes), (own * whitened).sum(axes)])
        whole = sums.clone()
        dist.all_reduce(whole)
        first, second = (whole / ctx.count).unbind()
        dx = (own - first.view(shape) - whitened * second.view(shape)) * scale.view(shape)
        if weight is not None:
            dx *= weight.to(dx.dtype).view(shape)
        # The gradients of weight and bias are those of the own rows: the processes' are averaged as all others are.
        parts = (None if part is None else total.to(part.dtype) for part, total in ((weight, sums[1]), (bias, sums[0])))
        return dx.to(x.dtype), *parts, None, None, None, None
