"""VGG for 32×32 images: with BatchNorm and three dense layers, and the VGG-like network of the variance paper.

Simonyan & Zisserman, 2015; the VGG-like network is Zagoruyko's, as Neklyudov et al. (ICLR 2019) use it.
"""

from torch import nn

from .initialization import initialize_he
from .patches import cut_patches
from .small import scale_sizes

BLOCKS = {9: (1, 1, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Convolutions of each block. The shallow network has no fifth block: it halves the image four times."""
WIDTHS = (64, 128, 256, 512, 512)


def vgg(depth: int = 16, classes: int = 10, channels: int = 3, width: float = 1.0, patch: int = 1) -> nn.Module:
    """VGG16 or VGG19 with BatchNorm after every convolution, and 512-512-classes with dropout at the end; or VGG9.

    `width` scales all layers; with `patch` the network sees patches of so many pixels a side. VGG9 takes images, or patches, of
    16×16, the others of 32×32.

    Returns: a network `[B, channels, H, W]` → `[B, classes]`. Raises: ValueError if there is no such depth.

    >>> import torch
    >>> vgg(depth=9, width=0.125, patch=2)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if depth not in BLOCKS:
        raise ValueError(f"depth must be 9, 16 or 19, got {depth}")
    layers: list[nn.Module]
    layers, inputs = cut_patches(patch, channels)
    sizes = scale_sizes(WIDTHS[: len(BLOCKS[depth])], width)
    for size, count in zip(sizes, BLOCKS[depth], strict=True):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, size, 3, padding=1), nn.BatchNorm2d(size), nn.ReLU()]
            inputs = size
        layers.append(nn.MaxPool2d(2))
    (hidden,) = scale_sizes((512,), width)
    dense = [*(nn.Dropout(), nn.Linear(inputs, hidden), nn.ReLU()), *(nn.Dropout(), nn.Linear(hidden, hidden), nn.ReLU())]
    return initialize_he(nn.Sequential(nn.Sequential(*layers), nn.Flatten(), *dense, nn.Linear(hidden, classes)))


def vgg_like(classes: int = 10, channels: int = 3, width: float = 1.0) -> nn.Module:
    """Thirteen convolutions and two dense layers, with dropout between convolutions; `width` scales the channels.

    Returns: a network `[B, channels, 32, 32]` → `[B, classes]`.

    >>> import torch
    >>> vgg_like(classes=10, width=0.05)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    layers: list[nn.Module] = []
    inputs = channels
    for base, count in zip(WIDTHS, BLOCKS[16], strict=True):
        outputs = max(1, round(base * width))
        for index in range(count):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
            if index < count - 1:
                layers.append(nn.Dropout(0.3 if base == 64 else 0.4))
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    hidden = max(1, round(512 * width))
    dense = (nn.Dropout(), nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout())
    return initialize_he(nn.Sequential(nn.Sequential(*layers), nn.Flatten(), *dense, nn.Linear(hidden, classes)))
