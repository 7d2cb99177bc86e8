"""Images as patches: smaller images with more channels, so that a network costs less."""

from torch import nn


def cut_patches(patch: int, channels: int) -> tuple[list[nn.Module], int]:
    """Return what stands before a network that sees patches of `patch`×`patch` pixels, and how many channels they have.

    `[B, channels, H, W]` → `[B, patch²·channels, H/patch, W/patch]`. A patch of one pixel needs no layer.

    >>> cut_patches(2, 3), cut_patches(1, 3)
    (([PixelUnshuffle(downscale_factor=2)], 12), ([], 3))
    """
    if patch < 1:
        raise ValueError(f"patch must be at least 1, got {patch}")
    return ([] if patch == 1 else [nn.PixelUnshuffle(patch)]), channels * patch**2
