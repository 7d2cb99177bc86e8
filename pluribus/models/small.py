"""Networks small enough for a laptop: an MLP, LeNet-5 as in Caffe, and the SmallCNN of the MIMO paper."""

import itertools
from collections.abc import Sequence

from torch import nn


def mlp(inputs: int, outputs: int, hidden: Sequence[int] = (128, 128), width: float = 1.0) -> nn.Module:
    """Dense layers with ReLU between them; the input is flattened. `width` scales the hidden layers.

    Returns: a network `[B, …]` with `inputs` numbers a row → `[B, outputs]`.

    >>> import torch
    >>> mlp(inputs=4, outputs=3)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    sizes = [inputs, *scale_sizes(hidden, width)]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


def lenet5(classes: int = 10, channels: int = 1, size: int = 28, width: float = 1.0) -> nn.Module:
    """20-50-500-classes (times `width`), with 5×5 convolutions without padding, as in Caffe's example.

    Returns: a network `[B, channels, size, size]` → `[B, classes]`. Raises: ValueError if the images are smaller than 16×16.

    >>> import torch
    >>> lenet5(classes=10, size=28)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    side = ((size - 4) // 2 - 4) // 2
    if side < 1:
        raise ValueError(f"LeNet-5 needs images of at least 16×16, got {size}×{size}")
    first, second, dense = scale_sizes((20, 50, 500), width)
    return nn.Sequential(
        *(nn.Conv2d(channels, first, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(first, second, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(second * side * side, dense), nn.ReLU(), nn.Linear(dense, classes)),
    )


def small_cnn(classes: int = 10, channels: int = 3, size: int = 32, width: float = 1.0) -> nn.Module:
    """Three 3×3 convolutions with 16, 32 and 32 filters (times `width`), each halving the image, and a dense layer.

    Havasi et al., ICLR 2021, section 3.1, which says nothing about padding and pooling: those are our choice.

    Returns: a network `[B, channels, size, size]` → `[B, classes]`. Raises: ValueError if the images are smaller than 8×8.
    """
    side = size // 8
    if side < 1:
        raise ValueError(f"SmallCNN needs images of at least 8×8, got {size}×{size}")
    layers: list[nn.Module] = []
    filters = scale_sizes((16, 32, 32), width)
    for before, after in itertools.pairwise((channels, *filters)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(filters[-1] * side * side, classes))


def scale_sizes(sizes: Sequence[int], width: float) -> list[int]:
    """Multiply layer sizes by a width; each stays at least 1.

    >>> scale_sizes((16, 32), 0.5)
    [8, 16]
    """
    return [max(1, round(size * width)) for size in sizes]
