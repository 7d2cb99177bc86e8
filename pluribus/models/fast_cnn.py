"""A convolutional network that learns CIFAR-10 in minutes on two cores.

The first layer has no weights: it cuts the image into 2×2 patches at stride 2 and writes each in an orthogonal basis, the
discrete cosine transform over the patch and over the channels. For natural images these are nearly the principal components:
brightness and colour, and their differences in both directions. BatchNorm without weights of its own then gives every component
the same variance, so that the input is about white without being fitted to the data. The positive and the negative part of
each component are two channels. This quarters the cost of the first convolutions, which would cost most, and lets a high
learning rate work from the first step on.

Then follow three blocks: a 3×3 convolution, 2×2 maxima, BatchNorm and GELU; a second convolution, BatchNorm and GELU. The
largest value of every channel goes into the linear layer. A convolution starts as the identity on as many channels as it can
pass on, so that signals and gradients go through all layers from the first step on; its other filters are drawn at random.

As the transform has no weights, the first layer that methods such as MIMO convert is the first convolution.

Whitened patches and this kind of block are used by Page, "How to Train Your ResNet", 2018, and Jordan, "94% on CIFAR-10 in 3.29
Seconds on a Single GPU", 2024. Departures: a fixed basis in place of a fitted one, stride 2, and no other of their measures.
"""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .initialization import initialize_he
from .small import scale_sizes

PATCH = 2
SMALLEST = 16


class PatchTransform(nn.Module):
    """2×2 patches at stride 2 in the basis of the discrete cosine transform, each component at unit variance, both signs apart.

    Takes images `[B, C, H, W]` and returns `[B, 8·C, H/2, W/2]`. There are no parameters.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        patch, colours = cosine_basis(PATCH), cosine_basis(channels)
        basis = torch.einsum("ay,bx,cz->abczyx", patch, patch, colours)
        self.basis: Tensor
        self.register_buffer("basis", basis.reshape(-1, channels, PATCH, PATCH).float(), persistent=False)
        self.norm = nn.BatchNorm2d(len(self.basis), affine=False)

    def forward(self, x: Tensor) -> Tensor:
        components = self.norm(F.conv2d(x, self.basis.to(x.dtype), stride=PATCH))
        return torch.cat([components, -components], dim=1).relu()


def cosine_basis(size: int) -> Tensor:
    """The orthonormal basis of the discrete cosine transform, `[size, size]`, a row for each component, in double precision.

    >>> cosine_basis(2).float()
    tensor([[ 0.7071,  0.7071],
            [ 0.7071, -0.7071]])
    """
    place = torch.arange(size, dtype=torch.double)
    basis = torch.cos(math.pi * (place + 0.5) * place.unsqueeze(1) / size) * math.sqrt(2 / size)
    basis[0] = size**-0.5
    return basis


def fast_cnn(classes: int = 10, channels: int = 3, size: int = 32, width: float = 1.0) -> nn.Module:
    """Three blocks of two 3×3 convolutions with 48, 96 and 112 filters (times `width`) over transformed 2×2 patches.

    Returns: a network `[B, channels, size, size]` → `[B, classes]`. Raises: ValueError if the images are smaller than 16×16.

    >>> fast_cnn()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if size < SMALLEST:
        raise ValueError(f"the fast network needs images of at least {SMALLEST}×{SMALLEST}, got {size}×{size}")
    filters = scale_sizes((48, 96, 112), width)
    blocks: list[nn.Module] = [PatchTransform(channels)]
    for before, after in itertools.pairwise((2 * PATCH * PATCH * channels, *filters)):
        blocks += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(after), nn.GELU()]
        blocks += [nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.GELU()]
    return FastCNN(*blocks, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(filters[-1], classes))


class FastCNN(nn.Sequential):
    """A chain of layers whose convolutions start as the identity, where they have channels for it."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for layer in self:
            if isinstance(layer, (nn.Conv2d, nn.BatchNorm2d, nn.Linear)):
                layer.reset_parameters()
            if isinstance(layer, nn.Conv2d):
                passed = min(layer.in_channels, layer.out_channels)
                nn.init.dirac_(layer.weight.data[:passed])


def fast_resnet(classes: int = 10, channels: int = 3, size: int = 32, width: float = 1.0, blocks: int = 1) -> nn.Module:
    """The fast network with residual blocks, and 64 filters (times `width`) at every resolution.

    Each of three stages is a 3×3 convolution, 2×2 maxima, BatchNorm and GELU, and then `blocks` residual blocks of two 3×3
    convolutions. All convolutions but the first have the same shape, 2 + 6·`blocks` of them, for methods that share weights
    between layers of equal shape.

    Returns: a network `[B, channels, size, size]` → `[B, classes]`. Raises: ValueError if the images are smaller than 16×16.

    >>> fast_resnet(width=0.5)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if size < SMALLEST:
        raise ValueError(f"the fast network needs images of at least {SMALLEST}×{SMALLEST}, got {size}×{size}")
    (filters,) = scale_sizes((64,), width)
    layers: list[nn.Module] = [PatchTransform(channels)]
    for before in (2 * PATCH * PATCH * channels, filters, filters):
        layers += [nn.Conv2d(before, filters, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(filters), nn.GELU()]
        layers += [FastBlock(filters) for _ in range(blocks)]
    return initialize_he(nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(filters, classes)))


class FastBlock(nn.Module):
    """Two 3×3 convolutions, each with BatchNorm and GELU, and a shortcut around them: `[B, C, H, W]` → `[B, C, H, W]`."""

    def __init__(self, filters: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(filters, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters)
        self.conv2, self.bn2 = nn.Conv2d(filters, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.gelu(self.bn2(self.conv2(F.gelu(self.bn1(self.conv1(x))))))
