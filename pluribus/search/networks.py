"""The networks of NAS-Bench-201: a stem, three stacks of equal cells with a reduction block between them, and a head.

    3×3 convolution, BN | N cells, C channels | reduction | N cells, 2C | reduction | N cells, 4C | BN, ReLU, mean, linear

A reduction block halves the image and doubles the channels: two 3×3 convolutions, the first with stride 2, beside a shortcut of
2×2 average pooling and a 1×1 convolution.

Dong & Yang, "NAS-Bench-201", 2020, section 2.1.
"""

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from ..core.folding import copy_plain
from ..core.members import Converted
from ..core.spec import require_count
from ..methods.maxout import Largest
from .cells import Cell
from .found_cell import FoundCell
from .operations import Factory, build_operation, make_convolution, make_operations


class PlainCell(nn.Module):
    """A cell with one operation on each edge: `[B, C, H, W]` → `[B, C, H, W]`."""

    def __init__(self, cell: Cell, channels: int, operations: Mapping[str, Factory]) -> None:
        super().__init__()
        self.graph = cell.graph
        self.edges = nn.ModuleList(build_operation(name, channels, operations) for name in cell.operations)

    def forward(self, x: Tensor) -> Tensor:
        return self.graph.combine(x, lambda edge, state: self.edges[edge](state))


class Reduction(nn.Module):
    """Half the height and width, twice the channels: `[B, C, H, W]` → `[B, 2C, ⌈H/2⌉, ⌈W/2⌉]`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            make_convolution(channels, 2 * channels, 3, stride=2), make_convolution(2 * channels, 2 * channels, 3)
        )
        # ceil_mode changes nothing for even sizes; with odd ones the shortcut is as large as what the convolutions return.
        self.shortcut = nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), nn.Conv2d(channels, 2 * channels, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.convolutions(x)


def list_blocks(
    make_cell: Callable[[int], nn.Module], *, classes: int, channels: int, width: int, cells: int, stacks: int
) -> list[nn.Module]:
    """Return stem, cells, reduction blocks and head in the order in which they run; `make_cell` gets the number of channels.

    Raises:
        ValueError: a number is too small.
    """
    for name, value, least in (("classes", classes, 2), ("channels", channels, 1), ("width", width, 1)):
        require_count(name, value, least, "a classifier distinguishes two classes" if least == 2 else "layers have channels")
    for name, value in (("cells", cells), ("stacks", stacks)):
        require_count(name, value, 1, "a network has cells")
    blocks: list[nn.Module] = [nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))]
    for stack in range(stacks):
        if stack:
            blocks.append(Reduction(width))
            width *= 2
        blocks += [make_cell(width) for _ in range(cells)]
    pooling = (nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return [*blocks, nn.Sequential(*pooling, nn.Linear(width, classes))]


def build_network(
    cell: Cell | FoundCell | str,
    *,
    classes: int = 10,
    channels: int = 3,
    width: int = 16,
    cells: int = 5,
    stacks: int = 3,
    operations: Mapping[str, Factory] | None = None,
) -> nn.Sequential:
    """Build the plain network of a cell, with new weights. The defaults are those of NAS-Bench-201 for CIFAR-10.

    Args:
        cell: a cell, what `search_cell` found, or a text in the notation of NAS-Bench-201.
        classes: C, the number of outputs.
        channels: those of the images.
        width: channels of the cells in the first stack; every further stack has twice as many.
        cells: how many cells a stack has.
        stacks: how many stacks there are.
        operations: factories by name, if the cell has others than `make_operations()` has.

    Returns:
        A network `[B, channels, H, W]` → logits `[B, C]`.

    Raises:
        ValueError: the text is no cell, an operation is unknown, or a number is too small.

    >>> import torch
    >>> net = build_network("|nor_conv_3x3~0|+|skip_connect~0|inner_conv_3x3~1|", width=4, cells=1)
    >>> net(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 10])
    """
    plain = Cell.parse(cell) if isinstance(cell, str) else cell.cell if isinstance(cell, FoundCell) else cell
    if not isinstance(plain, Cell):
        raise TypeError(f"cell must be a Cell, a FoundCell or a text, got {type(plain).__name__}")
    factories = make_operations() if operations is None else operations
    sizes = {"classes": classes, "channels": channels, "width": width, "cells": cells, "stacks": stacks}
    return nn.Sequential(*list_blocks(lambda width: PlainCell(plain, width, factories), **sizes))


def fold_network(network: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode that predicts the same, with one convolution for each inner ensemble of convolutions.

    Maxout convolutions stay as they are: the maximum of several layers is no layer.

    >>> net = build_network("|inner_conv_3x3~0|", width=4, cells=1, stacks=1)
    >>> counts = [sum(p.numel() for p in each.parameters()) for each in (net, fold_network(net))]
    >>> counts[0] - counts[1] == 3 * 4 * 4 * 9
    True
    """

    def fold_layer(layer: Converted) -> nn.Module:
        return layer if isinstance(layer, Largest) else layer.to_plain(0)

    return copy_plain(network, fold_layer)
