"""DenseNet-BC: every layer sees all layers before it in its block; bottlenecks, and compression between blocks.

Huang et al., "Densely Connected Convolutional Networks", 2017, for 32×32 images.
"""

import torch
from torch import Tensor, nn

from .initialization import initialize_he
from .patches import cut_patches


class DenseLayer(nn.Module):
    """A 1×1 bottleneck of four times the growth, then a 3×3 convolution; its output is appended to its input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(torch.relu(self.bn1(x)))
        return torch.cat([x, self.conv2(torch.relu(self.bn2(y)))], dim=1)


def densenet(depth: int = 40, growth: int = 12, classes: int = 10, channels: int = 3, patch: int = 1) -> nn.Module:
    """DenseNet-BC: three blocks of (depth − 4) / 6 layers; half of the channels go on to the next block.

    With `patch` the network sees patches of so many pixels a side.
    Returns: a network `[B, channels, H, W]` → `[B, classes]`, for H and W of at least 4.
    Raises: ValueError if the depth is not 6n + 4.

    >>> densenet(depth=10, growth=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if depth < 10 or (depth - 4) % 6:
        raise ValueError(f"depth must be 6n + 4 (40, 100), got {depth}")
    width = 2 * growth
    cut, channels = cut_patches(patch, channels)
    parts: list[nn.Module] = [*cut, nn.Conv2d(channels, width, 3, padding=1, bias=False)]
    for block in range(3):
        layers = []
        for _ in range((depth - 4) // 6):
            layers.append(DenseLayer(width, growth))
            width += growth
        parts.append(nn.Sequential(*layers))
        if block < 2:
            half = width // 2
            parts += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, half, 1, bias=False), nn.AvgPool2d(2)]
            width = half
    head = (nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
    return initialize_he(nn.Sequential(*parts, *head))
