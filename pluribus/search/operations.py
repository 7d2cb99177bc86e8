"""The operations that a search chooses from: those of NAS-Bench-201, and convolutions that are inner ensembles or maxout.

An operation is made by a factory, `factory(channels)` → a module `[B, C, H, W]` → `[B, C, H, W]`. A search takes any mapping
from names to factories, so these can be left out, and others added.

Convolutions are ReLU, convolution without bias, batch normalisation, in this order, as in NAS-Bench-201. An inner ensemble
averages m convolutions before the normalisation, and maxout takes the largest of their m responses: both are the layers of
`pluribus.Inner` and `pluribus.Maxout`. Under SGD the mean of m convolutions moves as one convolution does at learning rate lr/m
and weight decay m·wd, so a search compares these settings, too.

Dong & Yang, "NAS-Bench-201", 2020; Mohamed et al., "Inner Ensemble Networks", 2020, section 4.3 (m = 4).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor, nn

from ..core.suggestions import describe_unknown
from ..methods.inner import Averaged, Inner
from ..methods.maxout import Largest, Maxout
from .cells import check_name

Factory = Callable[[int], nn.Module]
"""From the number of channels to an operation."""


class Zero(nn.Module):
    """Zeros in the shape of the input: there is no edge."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


def make_convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """ReLU, convolution without bias, batch normalisation: `[B, inputs, H, W]` → `[B, outputs, ⌈H/stride⌉, ⌈W/stride⌉]`."""
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(nn.ReLU(), convolution, nn.BatchNorm2d(outputs))


def make_plain_convolution(channels: int, *, kernel: int) -> nn.Module:
    return make_convolution(channels, channels, kernel)


def make_inner_convolution(channels: int, *, kernel: int, copies: int) -> nn.Module:
    """The mean of `copies` convolutions, which are drawn by eq. 10 of the paper."""
    block = make_convolution(channels, channels, kernel)
    block[1] = Averaged(block[1], Inner(copies=copies, init="paper"))
    return block


def make_maxout_convolution(channels: int, *, kernel: int, copies: int) -> nn.Module:
    """The largest response of `copies` convolutions."""
    block = make_convolution(channels, channels, kernel)
    block[1] = Largest(block[1], Maxout(copies=copies).copies)
    return block


def make_pooling(channels: int) -> nn.Module:
    """The mean of 3×3 pixels, or of those of them that are inside the image."""
    return nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)


BENCHMARK_OPERATIONS: Mapping[str, Factory] = MappingProxyType(
    {
        "none": lambda channels: Zero(),
        "skip_connect": lambda channels: nn.Identity(),
        "nor_conv_1x1": partial(make_plain_convolution, kernel=1),
        "nor_conv_3x3": partial(make_plain_convolution, kernel=3),
        "avg_pool_3x3": make_pooling,
    }
)
"""The five operations of NAS-Bench-201 by their names there."""


def make_operations(copies: int = 4, kernels: Sequence[int] = (3,)) -> dict[str, Factory]:
    """Return the operations of NAS-Bench-201, and an inner ensemble and a maxout convolution for each kernel size.

    Args:
        copies: m, how many convolutions are averaged, or compete.
        kernels: sizes of the kernels, odd numbers.

    Raises:
        ValueError: `copies` is below 2, or a kernel is not odd.

    >>> list(make_operations())[-2:]
    ['inner_conv_3x3', 'maxout_conv_3x3']
    >>> make_operations()["inner_conv_3x3"](8)(torch.zeros(2, 8, 5, 5)).shape
    torch.Size([2, 8, 5, 5])
    """
    Inner(copies=copies)  # raises if the number makes no sense
    operations = dict(BENCHMARK_OPERATIONS)
    for kernel in kernels:
        if isinstance(kernel, bool) or not isinstance(kernel, int) or kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"a kernel must be an odd number of pixels, so that images keep their size, got {kernel!r}")
        operations[f"inner_conv_{kernel}x{kernel}"] = partial(make_inner_convolution, kernel=kernel, copies=copies)
        operations[f"maxout_conv_{kernel}x{kernel}"] = partial(make_maxout_convolution, kernel=kernel, copies=copies)
    return operations


def build_operation(name: str, channels: int, operations: Mapping[str, Factory]) -> nn.Module:
    """Make the operation with this name.

    Raises:
        ValueError: there is no such name in `operations`, or its factory does not return a module.
    """
    if name not in operations:
        raise ValueError(f"{describe_unknown('operation', name, operations)} Pass operations= with a factory for each name")
    made = operations[name](channels)
    if not isinstance(made, nn.Module):
        raise ValueError(f"the factory of operation {name!r} must return an nn.Module, got {type(made).__name__}")
    return made


def check_operations(operations: Mapping[str, Factory], channels: int) -> None:
    """Make every operation once and run it on zeros `[2, channels, 8, 8]`.

    Raises:
        ValueError: a name cannot be written in the notation of cells, or an operation changes the shape of what it gets.
    """
    if not isinstance(operations, Mapping) or not operations:
        raise ValueError("operations must be a mapping from names to factories, and not empty: {'conv': lambda channels: …}")
    x = torch.zeros(2, channels, 8, 8)
    for name in operations:
        check_name(name)
        with torch.no_grad():
            y = build_operation(name, channels, operations)(x)
        if not isinstance(y, Tensor) or y.shape != x.shape:
            got = list(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise ValueError(f"operation {name!r} must keep the shape of its input, {list(x.shape)}, got {got}")
