"""Common corruptions of images at five severities, to measure how robust a network is to a shift of its inputs.

    corrupt(images, "fog", severity=3)

15 kinds are the standard benchmark, over which mean corruption errors are taken; 4 more are for tuning. The constants
are those of CIFAR-10-C: they suit images of about 32 × 32 pixels, grey or in colour, and work from 8 × 8 on.

Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR 2019;
constants: github.com/hendrycks/robustness, ImageNet-C/create_c/make_cifar_c.py.

Departures, so that no photograph and no other library is needed:

- Frost is computed, not photographed: grains and needles of ice are mixed in with the same constants.
- Spatter's drops of water end where wet meets dry; the original finds their edges with Canny and rounds distances with OpenCV.
- Motion blur and the streaks of snow use ImageMagick's kernel, but are not rounded to bytes in between.
- Values are rounded to bytes; the original cuts them off, which darkens all images by half a level.
- An image gets the same draws at every severity, so that severities differ by their constants alone.

Not every constant grows: the mean squared distance from the clean images rises with severity for all kinds but glass-blur
(more blur hides moved pixels), frost (the image under it is darkened), elastic-transform (the tilt shrinks), spatter (water,
then mud) and saturate (less colour, then more). One channel has no colour: brightness adds, and saturate does nothing.
On one core, 1,000 colour images of 32 × 32 take 0.03 to 0.3 s, zoom-blur 0.6 s.
"""

import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..core.seeds import derive_seed
from ..core.suggestions import describe_unknown
from . import corruption_functions as kinds
from .corruption_filters import ImageDraws

Kind = tuple[Callable[..., Tensor], tuple[tuple[Any, ...], ...]]

_STANDARD: dict[str, Kind] = {
    "gaussian-noise": (kinds.gaussian_noise, ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,))),
    "shot-noise": (kinds.shot_noise, ((500,), (250,), (100,), (75,), (50,))),
    "impulse-noise": (kinds.impulse_noise, ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,))),
    "defocus-blur": (kinds.defocus_blur, ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))),
    "glass-blur": (kinds.glass_blur, ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))),
    "motion-blur": (kinds.motion_blur, ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))),
    "zoom-blur": (kinds.zoom_blur, ((7,), (12,), (16,), (21,), (26,))),
    "snow": (
        kinds.snow,
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    "frost": (kinds.frost, ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))),
    "fog": (kinds.fog, ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))),
    "brightness": (kinds.brightness, ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,))),
    "contrast": (kinds.contrast, ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,))),
    "elastic-transform": (
        kinds.elastic_transform,
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": (kinds.pixelate, ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,))),
    "jpeg-compression": (kinds.jpeg_compression, ((80,), (65,), (58,), (50,), (40,))),
}
_EXTRA: dict[str, Kind] = {
    "speckle-noise": (kinds.speckle_noise, ((0.06,), (0.1,), (0.12,), (0.16,), (0.2,))),
    "gaussian-blur": (kinds.gaussian_blur, ((0.4,), (0.6,), (0.7,), (0.8,), (1,))),
    "spatter": (
        kinds.spatter,
        (
            (0.62, 0.1, 0.7, 0.7, 0.5, False),
            (0.65, 0.1, 0.8, 0.7, 0.5, False),
            (0.65, 0.3, 1, 0.69, 0.5, False),
            (0.65, 0.1, 0.7, 0.69, 0.6, True),
            (0.65, 0.1, 0.5, 0.68, 0.6, True),
        ),
    ),
    "saturate": (kinds.saturate, ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))),
}
_TABLE = _STANDARD | _EXTRA

STANDARD: tuple[str, ...] = tuple(_STANDARD)
EXTRA: tuple[str, ...] = tuple(_EXTRA)
KINDS = STANDARD + EXTRA
SEVERITIES = (1, 2, 3, 4, 5)
SMALLEST = 8
CHUNK = 2**20  # values at once: enough to keep torch busy, and few enough that memory does not grow with the set


def corrupt(images: Tensor, kind: str, severity: int, seed: int = 0, *, first: int = 0) -> Tensor:
    """Corrupt images in one of `KINDS`, at a severity from 1 to 5.

    The draws of an image depend on the seed, the kind, and the image's number in its set, not on torch's generator or the other
    images. If a set comes in parts, `first` is the number of a part's first image.

    Args: bytes `[N, C, H, W]` with 1 or 3 channels. Returns: bytes of the same shape.
    Raises: ValueError if the kind, the severity or the shape is wrong; TypeError if the images are no bytes.

    >>> images = torch.full((2, 1, 8, 8), 100, dtype=torch.uint8)
    >>> corrupt(images, "brightness", severity=2)[0, 0, 0, 0]
    tensor(126, dtype=torch.uint8)
    >>> torch.equal(corrupt(images, "fog", 3)[1:], corrupt(images[1:], "fog", 3, first=1))
    True
    """
    _check(images, kind, severity)
    apply, constants = _TABLE[kind]
    place, rows = zlib.crc32(kind.encode()), max(1, CHUNK // images[:1].numel()) if len(images) else 1
    parts = []
    for start in range(0, len(images), rows):
        part = images[start : start + rows].cpu()
        draws = ImageDraws([derive_seed(seed, place, first + start + row) for row in range(len(part))])
        values = apply(part.double() / 255, draws, *constants[severity - 1])
        parts.append((255 * values.clamp(0, 1) + 0.5).byte())
    return torch.cat(parts).to(images.device) if parts else images.clone()


def _check(images: Tensor, kind: str, severity: int) -> None:
    if kind not in _TABLE:
        raise ValueError(describe_unknown("corruption", kind, KINDS))
    if not isinstance(severity, int) or severity not in SEVERITIES:
        raise ValueError(f"severity must be a whole number from 1, mild, to 5, strong, got {severity!r}")
    if images.dtype != torch.uint8:
        raise TypeError(f"images must be bytes (torch.uint8), got {images.dtype}: corrupt them before they are normalised")
    if images.dim() != 4 or images.shape[1] not in (1, 3) or min(images.shape[2:]) < SMALLEST:
        raise ValueError(
            f"images must be [N, C, H, W] with 1 or 3 channels and at least {SMALLEST} × {SMALLEST} pixels, "
            f"got {list(images.shape)}"
        )
