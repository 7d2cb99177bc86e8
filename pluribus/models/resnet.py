"""Residual networks: the thin, deep ones for 32×32 images, and ResNet-50.

He et al., "Deep Residual Learning for Image Recognition", 2016. The CIFAR networks' shortcuts have no parameters: where the
shape changes, every other pixel is taken and the new channels are zero (option A).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .initialization import initialize_he
from .patches import cut_patches
from .small import scale_sizes


class Block(nn.Module):
    """Two 3×3 convolutions and a shortcut without parameters. What both convolutions pass on may be dropped."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.dropout1, self.dropout2 = (nn.Dropout(dropout) if dropout else nn.Identity() for _ in range(2))
        self.stride, self.more = stride, outputs - inputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.dropout1(torch.relu(self.bn1(self.conv1(x))))))
        if self.stride > 1 or self.more:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return self.dropout2(torch.relu(y + x))


def resnet(
    depth: int = 20, classes: int = 10, channels: int = 3, width: float = 1.0, dropout: float = 0.0, patch: int = 1
) -> nn.Module:
    """ResNet-20, 32, 44, 56 or 110: three groups of (depth − 2) / 6 blocks with 16, 32 and 64 channels (times `width`).

    `dropout` is the rate of dropout after every convolution but the first; with `patch` the network sees patches of so many
    pixels a side. Returns: a network `[B, channels, H, W]` → `[B, classes]`. Raises: ValueError if the depth is not 6n + 2.

    >>> import torch
    >>> resnet(depth=8, classes=7)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 7])
    """
    if depth < 8 or (depth - 2) % 6:
        raise ValueError(f"depth must be 6n + 2 (20, 32, 44, 56, 110), got {depth}")
    sizes = scale_sizes((16, 32, 64), width)
    groups, inputs = [], sizes[0]
    for outputs, stride in zip(sizes, (1, 2, 2), strict=True):
        shapes = [(inputs, stride), *[(outputs, 1)] * ((depth - 2) // 6 - 1)]
        blocks = [Block(own, outputs, step, dropout) for own, step in shapes]
        groups.append(nn.Sequential(*blocks))
        inputs = outputs
    cut, channels = cut_patches(patch, channels)
    stem = nn.Sequential(*cut, nn.Conv2d(channels, sizes[0], 3, 1, 1, bias=False), nn.BatchNorm2d(sizes[0]), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(sizes[-1], classes))
    return initialize_he(nn.Sequential(stem, *groups, *head))


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions, and a projection where the shape changes."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


def resnet50(classes: int = 1000, channels: int = 3, width: float = 1.0) -> nn.Module:
    """ResNet-50 for images of about 224×224: `[B, channels, H, W]` → `[B, classes]`. All filters are times `width`."""
    sizes = scale_sizes((64, 128, 256, 512), width)
    inputs = sizes[0]
    stem = nn.Sequential(
        *(nn.Conv2d(channels, inputs, 7, 2, 3, bias=False), nn.BatchNorm2d(inputs), nn.ReLU(), nn.MaxPool2d(3, 2, 1)),
    )
    groups = []
    for size, count, stride in zip(sizes, (3, 4, 6, 3), (1, 2, 2, 2), strict=True):
        blocks = [Bottleneck(inputs if i == 0 else 4 * size, size, stride if i == 0 else 1) for i in range(count)]
        groups.append(nn.Sequential(*blocks))
        inputs = 4 * size
    return initialize_he(nn.Sequential(stem, *groups, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)))
