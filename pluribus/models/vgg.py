"""VGG for 32×32 images: with BatchNorm and three dense layers, and the VGG-like network of the variance paper.

Simonyan & Zisserman, 2015; the VGG-like network is Zagoruyko's, as Neklyudov et al. (ICLR 2019) use it.
"""

from torch import nn

from .initialization import initialize_he

BLOCKS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
WIDTHS = (64, 128, 256, 512, 512)


def vgg(depth: int = 16, classes: int = 10, channels: int = 3) -> nn.Module:
    """VGG16 or VGG19 with BatchNorm after every convolution, and 512-512-classes with dropout at the end.

    Returns: a network `[B, channels, 32, 32]` → `[B, classes]`. Raises: ValueError if the depth is neither 16 nor 19.
    """
    if depth not in BLOCKS:
        raise ValueError(f"depth must be 16 or 19, got {depth}")
    layers: list[nn.Module] = []
    inputs = channels
    for width, count in zip(WIDTHS, BLOCKS[depth], strict=True):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    dense = [*(nn.Dropout(), nn.Linear(512, 512), nn.ReLU()), *(nn.Dropout(), nn.Linear(512, 512), nn.ReLU())]
    return initialize_he(nn.Sequential(nn.Sequential(*layers), nn.Flatten(), *dense, nn.Linear(512, classes)))


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
