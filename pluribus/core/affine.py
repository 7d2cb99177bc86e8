"""Linear and convolutional layers apart from their weights.

Every method that averages, samples, mixes or scales weights needs the same three things of a layer: to run it with given
weights, to run it with one set of weights a member, and to become a plain layer again. They are here, once.
"""

import copy
import math
import threading
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .module_copies import copy_module

CONVOLUTIONS: tuple[type[nn.Module], ...] = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
BATCHED_OUTPUTS, BATCHED_WEIGHTS = 32, 2**17
"""Linear layers with at least so many outputs, and at most so many weights in all members, run as a batch of products even
where the rows are shared; measured by `pluribus bench --part targets --networks mlp`."""
AFFINE: tuple[type[nn.Module], ...] = (nn.Linear, *CONVOLUTIONS)
NORMS: tuple[type[nn.Module], ...] = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
)
"""Layers that normalise what a layer answers."""

_requested = threading.local()
"""The output padding that follows from the size a transposed convolution was called with."""
_TRANSPOSED = {
    nn.ConvTranspose1d: F.conv_transpose1d,
    nn.ConvTranspose2d: F.conv_transpose2d,
    nn.ConvTranspose3d: F.conv_transpose3d,
}


def copy_to_meta(module: nn.Module) -> nn.Module:
    """A copy without its numbers: same structure, every tensor on the meta device, no memory.

    >>> copy_to_meta(nn.Linear(3, 2)).weight.device
    device(type='meta')
    """
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        memo[id(parameter)] = nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
    for buffer in module.buffers():
        memo[id(buffer)] = buffer.detach().to("meta")
    return copy_module(module, memo)


def prefer_convolutions(layers: dict[str, nn.Module]) -> list[str]:
    """The convolutions, or everything where there are none."""
    return [name for name, layer in layers.items() if isinstance(layer, CONVOLUTIONS)] or list(layers)


def get_weight_and_bias(layer: nn.Module) -> tuple[nn.Parameter, nn.Parameter | None]:
    """The weight and the bias of a layer."""
    weight, bias = layer.weight, getattr(layer, "bias", None)
    assert isinstance(weight, nn.Parameter)
    assert bias is None or isinstance(bias, nn.Parameter)
    return weight, bias


class Affine:
    """What a linear or convolutional layer does, apart from its weights.

    >>> layer = nn.Conv2d(3, 8, 3, stride=2, padding_mode="circular", padding=1)
    >>> x = torch.randn(4, 3, 9, 9)
    >>> torch.equal(Affine(layer)(x, layer.weight, layer.bias), layer(x))
    True
    """

    def __init__(self, layer: nn.Module) -> None:
        template: Any = copy_to_meta(layer)
        self.template = template
        self.linear = isinstance(layer, nn.Linear)
        self.transposed = _find_transposed(layer)
        self.groups: int = 1 if self.linear else template.groups
        self.inputs: int = template.in_features if self.linear else template.in_channels
        self.outputs: int = template.out_features if self.linear else template.out_channels
        # How many products an output is the sum of; a transposed convolution spreads its kernel over `stride` places.
        fan_in = self.inputs // self.groups * (1 if self.linear else math.prod(template.kernel_size))
        self.fan_in: float = fan_in if self.transposed is None else fan_in / math.prod(template.stride)

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if self.linear:
            return F.linear(x, weight, bias)
        if self.transposed is None:
            return self.template._conv_forward(x, weight, bias)
        t = self.template
        asked, padding = getattr(_requested, "padding", (None, None))
        padding = padding if asked is self and padding is not None else t.output_padding
        return self.transposed(x, weight, bias, t.stride, t.padding, padding, t.groups, t.dilation)

    def take_output_size(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """A forward pre-hook for transposed convolutions, which may be called with the size that is to come out."""
        x, *rest = args
        size = rest[0] if rest else kwargs.get("output_size")
        t = self.template
        padding = None
        if size is not None:
            padding = t._output_padding(x, size, t.stride, t.padding, t.kernel_size, len(t.kernel_size), t.dilation)
        _requested.padding = self, padding  # for the call of this layer that comes next in this thread
        return (x,), {key: value for key, value in kwargs.items() if key != "output_size"}

    def run_each(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """One set of weights a member: x `[1 or M, B, …]`, weight `[M, …]`, bias `[M, C]` → `[M, B, …]`.

        Of a batch that the members share, linear layers are one wide layer, unless they are so small that arranging its
        answer by members would cost more than it saves.
        """
        count = weight.shape[0]
        shared = x.shape[0] == 1
        if self.linear and shared and x.dim() == 3 and self.outputs >= BATCHED_OUTPUTS and weight.numel() <= BATCHED_WEIGHTS:
            x, shared = x.expand(count, -1, -1), False
        if self.linear and not shared:
            flat = x if x.dim() == 3 else x.flatten(1, -2)
            y = flat @ weight.mT if bias is None else torch.baddbmm(bias.unsqueeze(1), flat, weight.mT)
            return y if x.dim() == 3 else y.unflatten(1, x.shape[1:-1])
        if self.linear:
            wide = self(x.squeeze(0), weight.flatten(0, 1), None if bias is None else bias.flatten())
            return wide.unflatten(-1, (count, -1)).movedim(-2, 0)
        rows = [x.squeeze(0)] * count if shared else x.unbind()  # not x[m]: each would go back as a tensor of zeros of x's size
        biases = [None] * count if bias is None else bias.unbind()
        each = [self(*own) for own in zip(rows, weight.unbind(), biases, strict=True)]
        # Joined along the batch, which keeps channels last where they are.
        return each[0].unsqueeze(0) if count == 1 else torch.cat(each).unflatten(0, (count, -1))

    def measure_deviation(self, x: Tensor, variance: Tensor) -> Tensor:
        """The standard deviation of the response to each row of x, of weights with this variance: √(Σ x² variance).

        In single precision or better: squares leave the range of half precision, and √0 would have no gradient there.
        The variances of a linear layer may be a sparse matrix.
        """
        wide = torch.promote_types(x.dtype, torch.float)
        with nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False):
            squares, variance = x.to(wide).square(), variance.to(wide)
            if variance.layout is torch.strided:
                return (self(squares, variance) + 1e-16).sqrt()
            columns = variance @ squares.flatten(0, -2).mT
            return (columns.mT.contiguous() + 1e-16).sqrt().unflatten(0, x.shape[:-1])

    def align_channels(self, vectors: Tensor, y: Tensor) -> Tensor:
        """Vectors `[M, C]` shaped to act on the channels of `[M, B, …]`: the last axis of a linear layer, else the third."""
        shape = [1] * y.dim()
        shape[0], shape[-1 if self.linear else 2] = vectors.shape
        return vectors.view(shape)

    def add_to_channels(self, y: Tensor, vectors: Tensor | None) -> Tensor:
        """`[M, B, …]` with vectors `[1 or M, C]`, if there are any, added to its channels."""
        return y if vectors is None else y + self.align_channels(vectors, y)

    def scale_channels(self, weight: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The weight with its input channels times `inputs` `[I]` and its output channels times `outputs` `[O]`."""
        tail = (1,) * (weight.dim() - 2)
        if self.transposed is not None:  # [I, O/g, …]
            rows = inputs.view(-1, 1, *tail)
            columns = outputs.view(self.groups, -1).repeat_interleave(self.inputs // self.groups, 0)
        else:  # [O, I/g, …]
            rows = outputs.view(-1, 1, *tail)
            columns = inputs.view(self.groups, -1).repeat_interleave(self.outputs // self.groups, 0)
        return weight * rows * columns.view(*columns.shape, *tail)

    def make_layer(self, weight: Tensor, bias: Tensor | None = None) -> nn.Module:
        """An ordinary layer with these weights."""
        layer = copy.deepcopy(self.template)
        layer.weight = nn.Parameter(weight.detach().clone(), layer.weight.requires_grad)
        layer.bias = None if bias is None else nn.Parameter(bias.detach().clone(), layer.bias.requires_grad)
        return layer


def _find_transposed(layer: nn.Module) -> Any:
    """The functional form of a transposed convolution, else None."""
    return next((function for kind, function in _TRANSPOSED.items() if isinstance(layer, kind)), None)
