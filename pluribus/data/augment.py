"""Augmentation of whole batches at once, drawn for each image: pad and crop, flip."""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

Augmentation = Literal["none", "flip", "crop", "crop-flip"]
AUGMENTATIONS: tuple[str, ...] = get_args(Augmentation)
PAD = 4


def draws(kind: str, rows: int, generator: Generator | None = None) -> Tensor:
    """What happens to each of `rows` images: `[rows, 3]`, its shift down and to the right, and whether it is mirrored."""
    shifts = torch.randint(0, 2 * PAD + 1, (rows, 2), generator=generator)
    mirrored = torch.randint(0, 2, (rows, 1), generator=generator)
    if "crop" not in kind:
        shifts.fill_(PAD)
    if "flip" not in kind:
        mirrored.zero_()
    return torch.cat([shifts, mirrored], dim=1)


def augmented(images: Tensor, drawn: Tensor) -> Tensor:
    """Images `[B, C, H, W]` shifted by up to `PAD` pixels, black where nothing was, and mirrored, as drawn.

    >>> image = torch.arange(4).view(1, 1, 2, 2)
    >>> augmented(image, torch.tensor([[PAD, PAD, 1]])).tolist()
    [[[[1, 0], [3, 2]]]]
    """
    height, width = images.shape[2:]
    if bool((drawn[:, :2] != PAD).any()):
        windows = F.pad(images, (PAD,) * 4).unfold(2, height, 1).unfold(3, width, 1)  # [B, C, 2·PAD+1, 2·PAD+1, H, W], a view
        images = windows[torch.arange(len(images)), :, drawn[:, 0], drawn[:, 1]]
    mirrored = drawn[:, 2].bool()
    if bool(mirrored.any()):
        images = torch.where(mirrored.view(-1, 1, 1, 1), images.flip(3), images)
    return images
