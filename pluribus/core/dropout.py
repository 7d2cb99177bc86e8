"""Dropout that stays on in evaluation, with masks of every member's own."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from . import pytrees
from .errors import ConversionError
from .members import Converted, Likeness, MemberLayer
from .passes import Plan
from .surgery import carry_hooks, copy_with

if TYPE_CHECKING:
    from .ensemble import Ensemble

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def remark_functions(ensemble: "Ensemble", plan: Plan, batch: Any) -> None:
    """Say in the conversion's notes if the network calls dropout as a function, which cannot be reached."""
    with DropoutFinder() as found:
        one = pytrees.copy_tensors(batch) if ensemble.batch_axis is None else pytrees.take_rows(batch, 1)
        ensemble.executor.run_alone(ensemble, one, 0, plan)
    if found.names:
        names = ", ".join(sorted(found.names))
        ensemble.conversion.remark(
            f"the network calls {names} as a function, which cannot be reached and stays off: use nn.Dropout"
        )


class DropoutFinder(TorchFunctionMode):
    """Finds dropout that is called as a function. Our own layers do not call it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        kwargs = kwargs or {}
        rate = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        if "dropout" in name and isinstance(rate, (int, float)) and rate > 0:
            self.names.add(name)
        if name == "scaled_dot_product_attention" and kwargs.get("dropout_p", 0) > 0:
            self.names.add(f"{name} with dropout")
        return func(*args, **kwargs)


class Dropping(MemberLayer):
    """Dropout that is on in training and in evaluation, with a mask for each member and row."""

    def __init__(self, like: nn.Module, rate: float) -> None:
        super().__init__()
        self.likeness = Likeness(like)
        self.likeness.template.p = rate  # type: ignore[assignment]
        self.rate = rate
        self.whole_channels = not isinstance(like, (nn.Dropout, nn.AlphaDropout))
        self.unbatched_pair = isinstance(like, nn.Dropout1d)  # torch takes [B, C] for one [C, L]
        self.alpha = isinstance(like, (nn.AlphaDropout, nn.FeatureAlphaDropout))
        self.frozen: Tensor | None
        self.register_buffer("frozen", None)

    def respond(self, x: Tensor) -> Tensor:
        if self.frozen is not None:
            check_units(self.frozen[0], x[0])
            return apply_mask(x, self.pick(self.frozen), self.rate, self.alpha)
        probe = self.current.probe
        if probe is not None:
            probe.rows[self.place] = x[0, :0].detach()
        shape = (*x.shape[1:3], *(1 for _ in x.shape[3:])) if self.whole_channels else x.shape[1:]
        if self.unbatched_pair and x.dim() == 3:
            shape = (x.shape[1], 1)
        return apply_mask(x, *self.draw_dropout_mask(self.rate, shape, x), self.alpha)

    def freeze(self, count: int) -> None:
        row = self.facts.row
        if row is not None:  # else it did not run in evaluation
            units = row.shape[1:]
            shape = (*units[:1], *(1 for _ in units[1:])) if self.whole_channels else units
            self.frozen = self.draw(torch.rand, (1, *shape), row, per_row=False) >= self.rate

    def to_plain(self, index: int) -> nn.Module:
        assert self.frozen is not None
        return carry_hooks(self, Mask(self.frozen[index], self.rate, self.alpha))

    def to_noiseless(self, index: int) -> nn.Module:
        return copy_with(self.likeness.template, {})

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def apply_mask(x: Tensor, kept: Tensor, rate: float, alpha: bool) -> Tensor:
    """What is kept, scaled to keep the mean."""
    if alpha and rate < 1:
        # Alpha dropout keeps the mean 0 and the variance 1 of SELU's activations; what is dropped becomes `floor`.
        floor = -1.7580993408473766
        scale = ((1 - rate) * (1 + rate * floor**2)) ** -0.5
        return scale * (torch.where(kept.bool(), x, x.new_tensor(floor)) - rate * floor)
    scale = 1 / (1 - rate) if rate < 1 else 1.0
    if torch.compiler.is_compiling():  # which chooses its own passes; ONNX has no view as another type
        return x * (kept.to(x.dtype) * scale)
    factor = (kept.view(torch.uint8) if kept.dtype == torch.bool else kept).to(x.dtype)
    if len(factor) >= len(x) and factor.shape[1:] == x.shape[1:] and not torch.is_grad_enabled():
        return torch.addcmul(x.new_zeros(()), factor, x, value=scale, out=factor)  # in one pass, and in place
    return x * factor.mul_(scale)


def check_units(kept: Tensor, x: Tensor) -> None:
    """A fixed mask `[1, *units]` must fit the rows of x, `[B, *units]`."""
    if len(kept.shape) != len(x.shape) or any(k not in (1, n) for k, n in zip(kept.shape[1:], x.shape[1:], strict=True)):
        raise ValueError(f"the mask was fixed for rows of shape {list(kept.shape[1:])}, got {list(x.shape[1:])}: freeze anew")


class Mask(nn.Module):
    """Dropout with one fixed mask."""

    def __init__(self, kept: Tensor, rate: float, alpha: bool) -> None:
        super().__init__()
        self.rate, self.alpha = rate, alpha
        self.p = rate  # which the network may read
        self.kept: Tensor
        self.register_buffer("kept", kept.clone())

    def forward(self, x: Tensor) -> Tensor:
        check_units(self.kept, x)
        return apply_mask(x, self.kept, self.rate, self.alpha)


class Dropped(Converted):
    """Dropout before a layer that had none."""

    holds_original = True

    def __init__(self, layer: nn.Module, rate: float) -> None:
        super().__init__()
        self.likeness = Likeness(layer)
        self.dropout = Dropping(nn.Dropout(), rate)
        self.layer = copy_with(layer, {})

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise ConversionError(
                f"{self.place} gets a {type(x).__name__}, and dropout takes tensors: leave it out, exclude={self.place!r}"
            )
        return self.layer(drop_inputs(self.dropout, self.layer, x), *args, **kwargs)

    def to_plain(self, index: int) -> nn.Module:
        return Masked(self.dropout.to_plain(index), copy_with(self.layer, {}))

    def to_noiseless(self, index: int) -> nn.Module:
        return self.layer.to_noiseless(index) if isinstance(self.layer, Converted) else self.layer


def drop_inputs(dropout: nn.Module, layer: nn.Module, x: Tensor) -> Tensor:
    """What enters a layer with dropout, which takes the batch first: a recurrent layer may have time there, `[T, B, F]`."""
    if isinstance(layer, nn.RNNBase) and not layer.batch_first and x.dim() == 3:
        return dropout(x.transpose(0, 1)).transpose(0, 1)
    return dropout(x)


class Masked(nn.Module):
    """One fixed mask before a layer."""

    def __init__(self, mask: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.mask, self.layer = mask, layer

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:  # the network may read what the layer is like
            if name == "layer":
                raise
            return getattr(self.layer, name)

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.layer(drop_inputs(self.mask, self.layer, x), *args, **kwargs)
