"""What a network sees that reads `.weight` or `.bias` of a converted layer: what they are like, and no numbers.

Libraries ask a layer for the dtype or the device of its weight. A result computed from the weight itself would silently bypass
the members, so every operation on a stand-in raises the error that says which layer must be left out.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor


class WeightStandIn:
    """What the `name` of a converted layer is like: shape, dtype, device, and whether it is trained.

    >>> seen = WeightStandIn("fc", "weight", torch.zeros(3, 2))
    >>> seen.dtype, list(seen.shape), torch.zeros(1).to(seen.dtype)
    (torch.float32, [3, 2], tensor([0.]))
    """

    def __init__(self, place: str, name: str, like: Tensor) -> None:
        self._place, self._name = place, name
        self.shape, self.dtype, self.device = like.shape, like.dtype, like.device
        self.requires_grad, self.is_meta, self.is_quantized = like.requires_grad, False, False

    def dim(self) -> int:
        return len(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def refuse(self) -> NoReturn:
        """Raise the error that says which layer is meant, and what to do."""
        raise AttributeError(
            f"{self._place or 'the network'} was converted and has no {self._name} to read: leave it out, "
            f"exclude={self._place!r}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for many, and does without
            raise AttributeError(name)
        self.refuse()

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = [each for each in (*args, *(kwargs or {}).values()) if isinstance(each, WeightStandIn)]
        if func is not Tensor.to or len(args) != 2 or not isinstance(args[0], Tensor):
            found[0].refuse()
        return args[0].to(found[0].device, found[0].dtype, **(kwargs or {}))  # x.to(weight)


def _refuse(seen: WeightStandIn, *_: Any) -> NoReturn:
    seen.refuse()


for _name in ("add", "sub", "mul", "truediv", "matmul", "pow"):
    setattr(WeightStandIn, f"__{_name}__", _refuse)
    setattr(WeightStandIn, f"__r{_name}__", _refuse)
for _name in ("getitem", "setitem", "neg", "abs", "len", "iter"):
    setattr(WeightStandIn, f"__{_name}__", _refuse)


def make_stand_in(place: str, name: str, template: Tensor, own: Tensor | None) -> WeightStandIn:
    """The stand-in for a tensor of the layer that was replaced; dtype and device are those of the numbers there are now."""
    like = template if own is None else torch.empty(0, dtype=own.dtype, device=own.device)
    seen = WeightStandIn(place, name, template)
    seen.dtype = like.dtype if template.is_floating_point() else template.dtype
    seen.device = like.device
    return seen
