"""How much memory the weights of an ensemble take, found without spending it.

The method converts copies of the network on the meta device, whose tensors have shapes and no numbers. Of a large ensemble,
small ones are built there: the weights of every method grow linearly with its members or copies.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .affine import copy_to_meta
from .predictive import Task
from .spec import Spec
from .surgery import Subject
from .taking_apart import take_apart

READERS = (Tensor.item, Tensor.__float__, Tensor.__int__, Tensor.__bool__)


class ReadOnes(TorchFunctionMode):
    """Answers 1 where a number is read from a tensor on the meta device: conversions read the scale of weights."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in READERS and args[0].is_meta:
            return True if func is Tensor.__bool__ else 1 if func is Tensor.__int__ else 1.0
        return func(*args, **(kwargs or {}))


def count_weight_bytes(net: nn.Module, spec: Spec, task: Task = "classification") -> int | None:
    """Return the bytes of all parameters and buffers of the ensemble that `spec` makes of `net`.

    None is returned if they cannot be counted, because conversion needs the numbers of the weights, or because it fails: then
    building the ensemble tells why.

    >>> import pluribus
    >>> count_weight_bytes(nn.Linear(9, 1), pluribus.DeepEnsemble(members=1000))
    40000
    """
    try:
        with torch.random.fork_rng(devices=[]), ReadOnes(), torch.device("meta"):
            opened = take_apart(copy_to_meta(net), spec.get_takes_apart())
            return _extrapolate(
                spec, lambda small: _count_bytes(small.convert(Subject(copy_to_meta(opened), None, task, None)))
            )
    except Exception:
        return None


def _extrapolate(spec: Spec, count: Callable[[Spec], int]) -> int:
    """`count(spec)`, from the counts for sizes 2 and 3 in place of larger ones, of this spec and of the one inside it."""
    nested, size = spec.nested_option, spec.size_option

    def count_nested(outer: Spec) -> int:
        inner = getattr(outer, nested) if nested else None
        if not isinstance(inner, Spec):
            return count(outer)
        return _extrapolate(inner, lambda small: count(replace(outer, **{str(nested): small})))

    wanted = getattr(spec, size) if size else 0
    if wanted <= 3:
        return count_nested(spec)
    two, three = (count_nested(replace(spec, **{str(size): few})) for few in (2, 3))
    return two + (wanted - 2) * (three - two)


def _count_bytes(module: nn.Module) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers()))
