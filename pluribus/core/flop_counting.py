"""Counting the FLOPs of a call in one thread, while other threads run networks, too."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten
_SAME_SHAPE = {aten.relu.default, aten.gelu.default, aten._safe_softmax.default, aten.mul.Scalar}
_BATCH_NORMS = {aten.native_batch_norm.default, aten._native_batch_norm_legit_no_training.default}
_SUMS = {aten.add.Tensor, aten.mul.Tensor}


class FlopCounter(TorchDispatchMode):
    """Counts FLOPs by torch's formulas, but neither by module nor with torch's slow operations on the meta device.

    For its table by module torch's own `FlopCounterMode` puts hooks on every module of the process. They would also run in
    other threads, where they fail now and then, because two threads change one set.

    On the meta device torch computes shapes in Python, for a normalization in 4 ms. The common operations of networks are
    therefore answered here with an empty tensor of the shape that they have.

    >>> import torch
    >>> with FlopCounter() as counter:
    ...     _ = torch.nn.Linear(3, 2)(torch.randn(5, 3))
    >>> counter.get_total_flops()
    60
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; with True torch would import its compiler for the first operation."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self._total = 0

    def get_total_flops(self) -> int:
        """The FLOPs of all operations so far."""
        return self._total

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if not isinstance(func, torch._ops.OpOverload):
            return NotImplemented
        kwargs = kwargs or {}
        formula = flop_registry.get(func._overloadpacket)
        if formula is None:
            with self:  # in inference mode composite operations arrive whole
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        out = None if kwargs else _answer_on_meta(func, args)
        if out is None:
            out = func(*args, **kwargs)
        if formula is not None:
            self._total += formula(*args, **kwargs, out_val=out)
        return out


def count_call_flops(run: Callable[[], Any]) -> int | None:
    """The FLOPs of a call by torch's formulas; None where the call, or the counting of it, is not possible."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the counter does not know the fused transformer kernels
    try:
        with FlopCounter() as counter:
            run()
        return counter.get_total_flops()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def _answer_on_meta(func: Any, args: tuple[Any, ...]) -> Tensor | tuple[Tensor, ...] | None:
    """Return an answer without numbers to a common operation on the meta device; None if torch has to find its shape."""
    first = args[0] if args else None
    if not isinstance(first, Tensor) or first.device.type != "meta":
        return None
    if func in _SAME_SHAPE and first.is_floating_point():
        return torch.empty_like(first)
    if func in _BATCH_NORMS and any(isinstance(own, Tensor) and len(own) != first.shape[1] for own in args[1:5]):
        return None  # torch raises its own error
    if func in _BATCH_NORMS or (func is aten.native_layer_norm.default and list(first.shape[-len(args[1]) :]) == list(args[1])):
        # Only a training step reads the statistics, and it is never counted on the meta device.
        return torch.empty_like(first), first.new_empty(0), first.new_empty(0)
    if func is aten.addmm.default and _can_multiply(*args):
        return first.new_empty(args[1].shape[0], args[2].shape[1])
    if func in _SUMS and isinstance(args[1], Tensor):
        second = args[1]
        if (first.dtype, first.shape, first.stride()) == (second.dtype, second.shape, second.stride()):
            return torch.empty_like(first)
    return None


def _can_multiply(bias: Tensor, x: Tensor, weight: Tensor) -> bool:
    """Whether `bias + x @ weight` has matching shapes and one dtype; torch raises its own error where it has not."""
    fits = x.dim() == weight.dim() == 2 and x.shape[1] == weight.shape[0] and bias.shape == weight.shape[1:]
    return fits and bias.dtype == x.dtype == weight.dtype
