"""Wide residual networks: fewer layers, more channels, normalisation and activation before each convolution.

Zagoruyko & Komodakis, "Wide Residual Networks", 2016. Two variants with the same parameters are in use: where the shape
changes, the shortcut's projection takes the block's raw input, or that input after normalisation and activation.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from .initialization import initialize_he


class WideBlock(nn.Module):
    """Normalisation, activation and a 3×3 convolution, twice, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float, preactivated: bool) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 or inputs != outputs else None
        self.preactivated = preactivated

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.bn1(x))
        y = self.conv2(self.dropout(torch.relu(self.bn2(self.conv1(active)))))
        if self.projection is None:
            return x + y
        return self.projection(active if self.preactivated else x) + y


def wide_resnet(
    depth: int = 28,
    width: int = 10,
    classes: int = 10,
    channels: int = 3,
    dropout: float = 0.0,
    shortcut: Literal["raw", "preactivated"] = "raw",
) -> nn.Module:
    """WRN-depth-width: three groups of (depth − 4) / 6 blocks with 16, 32 and 64 times `width` channels.

    Args: `shortcut` says what the projection of a block takes: its "raw" input, or the "preactivated" one.
    Returns: a network `[B, channels, H, W]` → `[B, classes]`. Raises: ValueError if depth or shortcut makes no sense.

    >>> import torch
    >>> wide_resnet(depth=10, width=1)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if depth < 10 or (depth - 4) % 6:
        raise ValueError(f"depth must be 6n + 4 (16, 22, 28, 40), got {depth}")
    if shortcut not in ("raw", "preactivated"):
        raise ValueError(f"shortcut must be 'raw' or 'preactivated', got {shortcut!r}")
    groups, inputs = [], 16
    for base, stride in ((16, 1), (32, 2), (64, 2)):
        outputs, blocks = base * width, []
        for index in range((depth - 4) // 6):
            first = index == 0
            blocks.append(
                WideBlock(inputs if first else outputs, outputs, stride if first else 1, dropout, shortcut == "preactivated")
            )
        groups.append(nn.Sequential(*blocks))
        inputs = outputs
    head = (nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
    return initialize_he(nn.Sequential(nn.Conv2d(channels, 16, 3, 1, 1, bias=False), *groups, *head))
