"""The parts of corruptions: draws for each image, filters, warps and textures of batches `[B, C, H, W]` in double precision.

Double precision makes the result independent of the batch: an image rounds to the same bytes, whichever images are beside it.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

Border = Literal["nearest", "reflect"]
"""Beyond the edge, the edge pixel is repeated or the image is mirrored at its edge: scipy.ndimage's modes of that name."""


class ImageDraws:
    """Random numbers for B images, each from its own generator: the draws of an image do not depend on the other images."""

    def __init__(self, seeds: Sequence[int]) -> None:
        self.generators = [Generator().manual_seed(seed) for seed in seeds]

    def normal(self, *shape: int) -> Tensor:
        """Standard normal, `[B, *shape]`."""
        out = torch.empty(len(self.generators), *shape)
        for row, generator in zip(out.unbind(), self.generators, strict=True):
            row.normal_(generator=generator)
        return out.double()

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform between `low` and `high`, `[B, *shape]`."""
        out = torch.empty(len(self.generators), *shape)
        for row, generator in zip(out.unbind(), self.generators, strict=True):
            row.uniform_(generator=generator)
        return low + (high - low) * out.double()

    def poisson(self, rates: Tensor) -> Tensor:
        """Counts for rates `[B, …]`."""
        return torch.stack([torch.poisson(rate, generator) for rate, generator in zip(rates, self.generators, strict=True)])


def luma(x: Tensor) -> Tensor:
    """The brightness of each pixel, `[B, 1, H, W]`, with the weights of ITU-R BT.601."""
    if x.shape[1] == 1:
        return x
    return (x * torch.tensor([0.299, 0.587, 0.114], dtype=x.dtype).view(3, 1, 1)).sum(1, keepdim=True)


def convert_colour(colour: tuple[int, int, int], channels: int) -> Tensor:
    """Convert a colour from bytes to `[C, 1, 1]` from 0 to 1; for one channel, to its brightness."""
    rgb = torch.tensor(colour, dtype=torch.double).view(1, 3, 1, 1) / 255
    return (rgb if channels == 3 else luma(rgb))[0]


def apply_separable(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Apply a matrix `[H', H]` to the rows and one `[W', W]` to the columns: `[B, C, H, W]` → `[B, C, H', W']`."""
    return rows @ (x @ columns.T)


def blur(x: Tensor, sigma: float, border: Border = "nearest", truncate: float = 4.0) -> Tensor:
    """Apply a Gaussian blur that is cut off at `truncate` standard deviations."""
    return apply_separable(x, *(_gaussian_matrix(size, sigma, border, truncate) for size in x.shape[-2:]))


def _gaussian_matrix(size: int, sigma: float, border: Border, truncate: float) -> Tensor:
    """`[size, size]`: row i has the weights of the pixels that pixel i is blurred from."""
    radius = int(truncate * sigma + 0.5)
    offsets = torch.arange(-radius, radius + 1)
    weights = torch.exp(-0.5 * (offsets / max(sigma, 1e-9)).double() ** 2)
    found = torch.arange(size).view(-1, 1) + offsets
    if border == "nearest":
        found = found.clamp(0, size - 1)
    else:
        found = found % (2 * size)
        found = torch.where(found < size, found, 2 * size - 1 - found)
    return torch.zeros(size, size, dtype=torch.double).scatter_add_(1, found, (weights / weights.sum()).expand(size, -1))


def convolve(x: Tensor, kernel: Tensor) -> Tensor:
    """Convolve every channel with one kernel `[k, k]`; beyond the edge, the image is mirrored at its outermost pixels."""
    height, width, reach = *x.shape[-2:], len(kernel) // 2
    padded, out = F.pad(x, (reach,) * 4, mode="reflect"), torch.zeros_like(x)
    for down, right in kernel.nonzero().tolist():  # F.conv2d is slow in double: this takes a sixth of its time
        out.add_(padded[..., down : down + height, right : right + width], alpha=kernel[down, right].item())
    return out


def streak(x: Tensor, angle: Tensor, radius: int, sigma: float) -> Tensor:
    """Blur every image along its own angle `[B]`, in degrees, by half a Gaussian that is 2·radius + 1 pixels long.

        y(p) = Σ_i w_i x(p + round(i·(cos, sin))),    w_i ∝ exp(−i² / 2σ²),    i = 0 … 2·radius

    It goes to one side and takes whole pixels, like ImageMagick's motion blur; beyond the edge, the edge pixel is repeated.
    """
    (batch, channels, height, width), steps = x.shape, torch.arange(2 * radius + 1, dtype=torch.double)
    weights = torch.exp(-0.5 * (steps / sigma) ** 2)
    weights /= weights.sum()
    direction = torch.deg2rad(angle).view(-1, 1)
    down, right = (steps * direction.sin()).round().long(), (steps * direction.cos()).round().long()  # [B, steps]
    rows, columns = torch.arange(height).view(-1, 1), torch.arange(width)
    flat, out = x.flatten(2), torch.zeros_like(x)
    for step, weight in enumerate(weights.tolist()):
        row = (rows + down[:, step].view(-1, 1, 1)).clamp(0, height - 1)
        column = (columns + right[:, step].view(-1, 1, 1)).clamp(0, width - 1)
        found = (row * width + column).view(batch, 1, -1).expand(-1, channels, -1)
        out.add_(flat.gather(2, found).view_as(x), alpha=weight)
    return out


def zoom(x: Tensor, factor: float) -> Tensor:
    """Enlarge the middle of every image to the size of the whole."""
    sizes = x.shape[-2:]
    kept = [math.ceil(size / factor) for size in sizes]
    top, left = ((size - some) // 2 for size, some in zip(sizes, kept, strict=True))
    middle = x[..., top : top + kept[0], left : left + kept[1]]
    grown = F.interpolate(middle, size=[round(some * factor) for some in kept], mode="bilinear", align_corners=True)
    top, left = ((new - size) // 2 for size, new in zip(sizes, grown.shape[-2:], strict=True))
    return grown[..., top : top + sizes[0], left : left + sizes[1]]


def resize(pixels: Tensor, height: int, width: int) -> Tensor:
    """Average whole numbers `[B, C, H, W]` over boxes and round, first across, then down, like Pillow's box filter."""
    across = (pixels @ _box_matrix(pixels.shape[-1], width).T + 0.5).floor()
    return (_box_matrix(pixels.shape[-2], height) @ across + 0.5).floor()


def _box_matrix(size: int, new: int) -> Tensor:
    """`[new, size]`: a new pixel is the mean of the old pixels whose middle lies in its box, or of the one in which it lies."""
    scale = size / new
    middle = (torch.arange(new, dtype=torch.double).view(-1, 1) + 0.5) * scale
    apart = (torch.arange(size, dtype=torch.double) + 0.5 - middle) / max(scale, 1.0)
    inside = ((apart > -0.5) & (apart <= 0.5)).double()
    return inside / inside.sum(1, keepdim=True)


def warp(x: Tensor, places: Tensor, *, repeat_edge: bool) -> Tensor:
    """Take every pixel from its place `[B, H, W, 2]` (row, column), with bilinear interpolation between pixels.

    Beyond the edge, the image is mirrored; `repeat_edge` says whether its edge pixel is repeated.
    """
    sizes = torch.tensor(x.shape[-2:], dtype=x.dtype)
    grid = (2 * places + 1) / sizes - 1 if repeat_edge else 2 * places / (sizes - 1) - 1
    return F.grid_sample(x, grid.flip(-1), padding_mode="reflection", align_corners=not repeat_edge)


def draw_plasma(draws: ImageDraws, height: int, width: int, decay: float) -> Tensor:
    """Draw clouds from 0 to 1, `[B, 1, H, W]`, by diamond-square on a torus; the higher `decay`, the smoother.

    Each round halves the mesh: the middle of every square becomes the mean of its corners plus noise, then the middle of
    every side the mean of its four neighbours plus noise; then the noise shrinks by `decay`².
    """
    side = 1 << (max(height, width) - 1).bit_length()
    noise = draws.uniform(-1, 1, side, side)
    heights = torch.zeros_like(noise)
    step = side
    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        right, below = corners.roll(-1, 2), corners.roll(-1, 1)
        middles = (corners + right + below + below.roll(-1, 2)) / 4 + noise[:, half::step, half::step]
        heights[:, half::step, half::step] = middles
        heights[:, ::step, half::step] = (corners + right + middles + middles.roll(1, 1)) / 4 + noise[:, ::step, half::step]
        heights[:, half::step, ::step] = (corners + below + middles + middles.roll(1, 2)) / 4 + noise[:, half::step, ::step]
        step, noise = half, noise / decay**2
    low, high = heights.amin((1, 2), keepdim=True), heights.amax((1, 2), keepdim=True)
    return ((heights - low) / (high - low))[:, None, :height, :width]


def measure_distances(marked: Tensor, most: int) -> Tensor:
    """The distance of each pixel of `[B, 1, H, W]` from the nearest marked one, in pixels and at most `most`."""
    squares = torch.where(marked, 0.0, float(most**2)).double()
    for _ in range(2):  # along the rows, then along the columns: Pythagoras adds the squares
        squares = squares.mT
        size = squares.shape[-2]
        apart = (torch.arange(size).view(-1, 1) - torch.arange(size)) ** 2
        squares = torch.stack([(squares + apart[:, [place]]).amin(-2) for place in range(size)], dim=-2)
    return squares.clamp(max=most**2).sqrt()
