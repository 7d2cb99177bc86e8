"""A small vision transformer: patches, a class token, encoder layers, a linear head.

Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021.
"""

import torch
from torch import Tensor, nn


class VisionTransformer(nn.Module):
    """A transformer over patches of an image: `[B, channels, size, size]` → `[B, classes]`.

    Raises: ValueError if `patch` does not divide `size`, or `heads` does not divide `width`.

    >>> VisionTransformer(classes=5, size=8, width=8, depth=1)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        classes: int = 10,
        channels: int = 3,
        size: int = 32,
        patch: int = 4,
        width: int = 96,
        depth: int = 6,
        heads: int = 4,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if size % patch or width % heads:
            raise ValueError(f"patch must divide size and heads divide width, got {patch} of {size} and {heads} of {width}")
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), patches], dim=1) + self.positions
        return self.head(self.norm(self.encoder(tokens)[:, 0]))


def vit(classes: int = 10, channels: int = 3, size: int = 32, patch: int = 4) -> nn.Module:
    """A `VisionTransformer` with six layers of width 96."""
    return VisionTransformer(classes, channels, size, patch)
