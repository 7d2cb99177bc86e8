"""What a network does across the rows of a batch, and what it draws for them, where several processes share the batch.

A step must not depend on how many processes take it. Layers of ours draw their noise for the whole batch and take that of their
own rows (`core.shares`). For the rest of the network two things are in force while a step runs, and no module is changed:

- `WholeBatchDraws` sees every random number that torch draws on the way, whoever asks for it (`nn.Dropout`, `F.dropout`,
  attention, recurrent layers, stochastic depth), and draws it for the rows of the whole batch;
- `synchronize_batch_norm` computes BatchNorm over the rows of all processes.

Which axis of a drawn tensor has the rows is told from its size: the first one if it has as many entries as there are rows, or M
times as many for M members. A mask of dropout may also have them on its second axis (a sequence with time first), or several
entries for each row on its first (attention heads). Noise of any other shape, as that of weights, is the same in all processes.

Sizes that are equal by chance mislead it (a sequence with time first and as many steps as a process has rows), and masks that a
fused kernel draws inside (attention and recurrent layers on GPUs) are not seen: then masks are as good, but not those of one
process.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..core.members import is_checkpointing
from ..core.passes import get_pass
from ..core.shares import Share, use_share
from .batch_norm import synchronize_batch_norm

MASKS = {"bernoulli", "bernoulli_", "native_dropout"}
NOISE = {
    *("rand", "randn", "randint", "normal", "rand_like", "randn_like", "randint_like", "multinomial"),
    *("uniform_", "normal_", "exponential_", "random_", "log_normal_", "geometric_", "cauchy_"),
}


class WholeBatch:
    """Makes steps on a share of a batch those on the whole batch, up to rounding. One object serves one step."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.draws = WholeBatchDraws(share)

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """For the forward pass on the share."""
        with use_share(self.share), synchronize_batch_norm(), self.draws:
            yield

    @contextlib.contextmanager
    def backward(self) -> Iterator[None]:
        """For the backward pass of the same step."""
        if not self.draws.recomputes:
            with synchronize_batch_norm():
                yield
            return
        with synchronize_batch_norm(), self.draws:
            yield


class WholeBatchDraws(TorchDispatchMode):
    """Random numbers for rows are drawn for the rows of the whole batch, of which the own ones are taken."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self.share = share
        self.recomputes = False
        """Whether the backward pass will draw again (gradient checkpointing)."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "overloadpacket", func).__name__
        if name not in MASKS and name not in NOISE:
            return func(*args, **kwargs)
        self.recomputes |= is_checkpointing()
        like = next((arg for arg in args if isinstance(arg, (Tensor, list, tuple))), None)
        found = None if like is None else self.find_rows(like.shape if isinstance(like, Tensor) else like, name in MASKS)
        if found is None:
            return func(*args, **kwargs)
        share, (axis, members) = self.share, found
        widened = [self.widen(arg, like, axis, members) for arg in args]
        drawn = func(*widened, **kwargs)
        if name.endswith("_"):
            return args[0].copy_(share.take(drawn, axis, members))
        if isinstance(drawn, Tensor):
            return share.take(drawn, axis, members)
        return tuple(share.take(part, axis, members) for part in drawn)

    def find_rows(self, shape: Sequence[int], is_mask: bool) -> tuple[int, int] | None:
        """The axis with the rows, and how many members it has one after the other; None if no axis can be told to have them."""
        own, current = self.share.own, get_pass()
        count = 1 if current is None else current.computed
        if not shape or 0 in shape:
            return None
        is_attention = len(shape) == 3 and shape[1] == shape[2]  # heads one after the other for each row, `[B·heads, T, T]`
        if shape[0] in (own, count * own):
            axis = 0
        elif is_mask and not is_attention and len(shape) > 2 and shape[1] in (own, count * own):
            axis = 1
        elif is_mask and shape[0] % own == 0:
            axis = 0
        else:
            return None
        return axis, count if shape[axis] % (count * own) == 0 else 1

    def widen(self, arg: Any, like: Any, axis: int, members: int) -> Any:
        """A tensor, or a shape, for the whole batch in place of one for the own rows; anything else as it is."""
        share = self.share
        if not isinstance(like, Tensor):
            return share.widen(arg, axis) if arg is like else arg
        if not isinstance(arg, Tensor) or arg.shape != like.shape:
            return arg
        # The other processes' rows are not here. What they get is not looked at, so that any rows do.
        rows = torch.arange(share.rows, device=arg.device).div_(share.world, rounding_mode="floor").clamp_(max=share.own - 1)
        whole = arg.unflatten(axis, (members, share.own, -1)).index_select(axis + 1, rows).flatten(axis, axis + 2)
        # Torch draws in the order in which axes lie in memory. The stride of a single row says nothing: then rows come first.
        strides = [math.inf if place == 0 and arg.shape[0] == 1 else arg.stride(place) for place in range(arg.dim())]
        order = sorted(range(arg.dim()), key=strides.__getitem__, reverse=True)
        return whole.permute(order).contiguous().permute([order.index(place) for place in range(arg.dim())])
