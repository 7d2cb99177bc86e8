"""The corruptions: each takes images `[B, C, H, W]` from 0 to 1 and returns them corrupted, before clipping.

Its arguments are the images, their draws, and the constants of one severity, which the tables in corruptions.py list. A new
corruption is a function here and a row in one of these tables.
"""

import io

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .corruption_filters import (
    ImageDraws,
    blur,
    convert_colour,
    convolve,
    draw_plasma,
    luma,
    measure_distances,
    resize,
    streak,
    warp,
    zoom,
)

ICE = (205, 230, 255)
WATER = (175, 238, 238)
MUD = (63, 42, 20)


def gaussian_noise(x: Tensor, draws: ImageDraws, std: float) -> Tensor:
    """Add Gaussian noise."""
    return x + std * draws.normal(*x.shape[1:])


def shot_noise(x: Tensor, draws: ImageDraws, photons: float) -> Tensor:
    """Poisson noise of counted photons: a white pixel has `photons` of them on average."""
    return draws.poisson(photons * x) / photons


def impulse_noise(x: Tensor, draws: ImageDraws, share: float) -> Tensor:
    """A share of the values becomes 0 or 1 with equal probability, in each channel on its own."""
    place = draws.uniform(0, 1, *x.shape[1:])
    return torch.where(place < share, (place < share / 2).to(x.dtype), x)


def speckle_noise(x: Tensor, draws: ImageDraws, std: float) -> Tensor:
    """Add Gaussian noise in proportion to the brightness."""
    return x + x * std * draws.normal(*x.shape[1:])


def gaussian_blur(x: Tensor, draws: ImageDraws, sigma: float) -> Tensor:
    """Blur by a Gaussian."""
    return blur(x, sigma)


def glass_blur(x: Tensor, draws: ImageDraws, sigma: float, rounds: int) -> Tensor:
    """Blur; let every pixel take the place of one next to it, above or to the left, `rounds` times; blur again.

    The published loop is written as a swap, but assigns one view of the array to another, so that pixels are copied; and it
    goes from the last pixel to the first, so that none is copied after it was overwritten. Hence one gather a round. (Its
    third constant, how far a pixel may move, is 1 at every severity.)
    """
    batch, channels, height, width = x.shape
    x = blur(x, sigma)
    rows, columns = torch.arange(height).view(-1, 1), torch.arange(width)
    moves = (rows >= 2) & (columns >= 2)  # the loop stops short of the first two
    for _ in range(rounds):
        up, left = (draws.uniform(0, 2, 2, height, width).long() * moves).unbind(1)
        found = ((rows - up) * width + columns - left).view(batch, 1, -1).expand(-1, channels, -1)
        x = x.flatten(2).gather(2, found).view_as(x)
    return blur(x, sigma)


def defocus_blur(x: Tensor, draws: ImageDraws, radius: float, softness: float) -> Tensor:
    """A disk whose edge is softened by a Gaussian of 3 × 3 pixels."""
    line = torch.arange(-2, 3, dtype=torch.double)  # the widest disk reaches 1 pixel, its softened edge 2
    disk = ((line.view(-1, 1) ** 2 + line**2) <= radius**2).double()
    bell = torch.exp(-0.5 * (torch.arange(-1, 2, dtype=torch.double) / softness) ** 2)
    bell /= bell.sum()
    soft = convolve((disk / disk.sum())[None, None], torch.outer(bell, bell))[0, 0]
    return convolve(x, soft)


def motion_blur(x: Tensor, draws: ImageDraws, radius: int, sigma: float) -> Tensor:
    """Blur along a random direction within 45° of the horizontal."""
    return streak(x, draws.uniform(-45, 45), radius, sigma)


def zoom_blur(x: Tensor, draws: ImageDraws, steps: int) -> Tensor:
    """The mean of the image and of `steps` enlargements of it, by 1, 1.01, 1.02, …

    The steps are as many as the published `np.arange(1, 1.06, 0.01)` and so on have; rounding decides whether their end is in.
    """
    out = x.clone()
    for step in range(steps):
        out += zoom(x, 1 + step / 100)
    return out / (steps + 1)


def snow(
    x: Tensor, draws: ImageDraws, mean: float, spread: float, size: float, level: float, radius: int, sigma: float, kept: float
) -> Tensor:
    """Flakes are noise over a level, enlarged and streaked downwards; they fall twice, once turned by 180°."""
    flakes = zoom(mean + spread * draws.normal(1, *x.shape[2:]), size)
    flakes = torch.where(flakes < level, 0.0, flakes).clamp(max=1)
    flakes = streak(flakes, draws.uniform(-135, -45), radius, sigma)
    pale = torch.maximum(x, 1.5 * luma(x) + 0.5)
    return kept * x + (1 - kept) * pale + flakes + flakes.flip(2, 3)


def frost(x: Tensor, draws: ImageDraws, kept: float, added: float) -> Tensor:
    """Cover the image with a frozen pane."""
    return kept * x + added * _ice(draws, *x.shape[2:]) * convert_colour(ICE, x.shape[1])


def _ice(draws: ImageDraws, height: int, width: int) -> Tensor:
    """A frozen pane, `[B, 1, H, W]`: grains where a cloud is over a level, and needles in three directions 60° apart."""
    frozen = (3 * draw_plasma(draws, height, width, decay=1.8) - 1).clamp(0, 1)
    grains = draw_plasma(draws, height, width, decay=1.1)
    turn = draws.uniform(0, 60)
    length = max(height, width) / 10
    germs = (draws.uniform(0, 1, 3, height - 2, width - 2) < 0.2 / length**2).double()
    germs = F.pad(germs, (1, 1, 1, 1))  # streaks repeat what lies on the edge
    needles = torch.cat([streak(germs[:, [way]], turn + 60 * way, round(length), length) for way in range(3)], dim=1)
    needles = (1.5 * length * needles.amax(1, keepdim=True)).clamp(max=1)  # 1 at the germ, whatever the length
    return (0.15 + frozen * (0.2 + 0.6 * grains) + 0.6 * needles).clamp(max=1)


def fog(x: Tensor, draws: ImageDraws, thickness: float, decay: float) -> Tensor:
    """Add clouds, and scale the sum back to the image's highest value."""
    height, width = x.shape[2:]
    brightest = x.amax((1, 2, 3), keepdim=True)
    return (x + thickness * draw_plasma(draws, height, width, decay)) * brightest / (brightest + thickness)


def brightness(x: Tensor, draws: ImageDraws, shift: float) -> Tensor:
    """The value of HSV, which is the largest channel, is raised; hue and saturation stay. Grey values are just raised."""
    value = x.amax(1, keepdim=True)
    raised = (value + shift).clamp(max=1)
    return torch.where(value > 0, x * raised / value.clamp(min=1e-9), raised)


def contrast(x: Tensor, draws: ImageDraws, kept: float) -> Tensor:
    """Move all values towards the mean of their channel."""
    mean = x.mean((2, 3), keepdim=True)
    return mean + kept * (x - mean)


def elastic_transform(x: Tensor, draws: ImageDraws, strength: float, smoothness: float, tilt: float) -> Tensor:
    """Three points move by up to `tilt` and take the image along; then a smooth random field moves its pixels.

    All three constants are shares of the image's shorter side.
    """
    height, width = x.shape[2:]
    side = min(height, width)
    grid = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"), dim=-1).double()
    middle, arm = torch.tensor([height // 2, width // 2]), side // 3
    points = (middle + arm * torch.tensor([[1, 1], [1, -1], [-1, -1]])).double()
    moved = points + tilt * side * draws.uniform(-1, 1, 3, 2)
    back = torch.linalg.solve(_with_one(moved), points)  # [B, 3, 2]: from where a pixel is to where it was
    x = warp(x, (_with_one(grid).view(-1, 3) @ back).view(-1, height, width, 2), repeat_edge=False)
    field = strength * side * blur(draws.uniform(-1, 1, 2, height, width), smoothness * side, "reflect", truncate=3)
    return warp(x, grid + field.movedim(1, -1), repeat_edge=True)


def _with_one(points: Tensor) -> Tensor:
    return torch.cat([points, torch.ones_like(points[..., :1])], dim=-1)


def pixelate(x: Tensor, draws: ImageDraws, share: float) -> Tensor:
    """Shrink the image by box averages and enlarge it again."""
    height, width = x.shape[2:]
    small = resize((255 * x).round(), int(height * share), int(width * share))
    return resize(small, height, width) / 255


def jpeg_compression(x: Tensor, draws: ImageDraws, quality: int) -> Tensor:
    """Compress the image as JPEG and decode it. Raises: ImportError if pillow is not installed."""
    from PIL import Image

    pictures = (255 * x).round().byte().movedim(1, -1).numpy()
    out = np.empty_like(pictures)
    for picture, new in zip(pictures, out, strict=True):
        file = io.BytesIO()
        Image.fromarray(picture.squeeze(-1) if picture.shape[-1] == 1 else picture).save(file, "JPEG", quality=quality)
        new[:] = np.asarray(Image.open(file)).reshape(new.shape)
    return torch.from_numpy(out).movedim(-1, 1).double() / 255


def spatter(
    x: Tensor, draws: ImageDraws, mean: float, spread: float, size: float, level: float, strength: float, mud: bool
) -> Tensor:
    """Drops are blurred noise over a level: of water, which shines where it rises, or of mud, which covers."""
    liquid = blur(mean + spread * draws.normal(1, *x.shape[2:]), size)
    if mud:
        cover = blur((liquid > level).double(), strength)
        cover = torch.where(cover < 0.8, 0.0, cover)
        return (1 - cover) * x + cover * convert_colour(MUD, x.shape[1])
    wet = liquid >= level
    shine = torch.where(wet, liquid.clamp(max=1) * _relief(wet), 0.0)
    shine = shine / shine.amax((2, 3), keepdim=True).clamp(min=1e-9)
    return x + strength * shine * convert_colour(WATER, x.shape[1])


def _relief(wet: Tensor) -> Tensor:
    """The light that each pixel of the drops reflects: high where the distance to their edges grows to the lower right."""
    box = torch.full((3, 3), 1 / 9)
    edge = wet & (convolve(wet.double(), box) < 0.999)
    steps = convolve(measure_distances(edge, 20), box).long()
    counts = torch.zeros(len(wet), 21, dtype=torch.double).scatter_add_(
        1, steps.flatten(1), torch.ones_like(edge.flatten(1).double())
    )
    ranks = counts.cumsum(1)
    lowest = counts.gather(1, steps.flatten(1).amin(1, keepdim=True))
    even = (ranks - lowest) / (ranks[:, -1:] - lowest).clamp(min=1)  # equalised: every brightness is equally frequent
    light = even.gather(1, steps.flatten(1)).view_as(edge)
    emboss = torch.tensor([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    return convolve(convolve(light, emboss).clamp(0, 1), box)


def saturate(x: Tensor, draws: ImageDraws, factor: float, shift: float) -> Tensor:
    """HSV's saturation times `factor` plus `shift`. Where there is no hue, red is taken; one channel is left as it is."""
    if x.shape[1] == 1:
        return x
    value = x.amax(1, keepdim=True)
    below = value - x
    chroma = below.amax(1, keepdim=True)
    red = torch.tensor([0.0, 1.0, 1.0], dtype=x.dtype).view(3, 1, 1)
    hue = torch.where(chroma > 0, below / chroma.clamp(min=1e-9), red)
    saturation = (factor * chroma / value.clamp(min=1e-9) + shift).clamp(max=1)
    return value * (1 - saturation * hue)
