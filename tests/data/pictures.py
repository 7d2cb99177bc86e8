"""Pictures to corrupt."""

import torch
import torch.nn.functional as F


def scenes(count, channels=3, height=32, width=32):
    """Bytes `[count, C, H, W]` with slopes and edges, as photographs have them."""
    generator = torch.Generator().manual_seed(1)
    slopes, shapes = (torch.rand(count, channels, 5, 5, generator=generator) for _ in range(2))
    slopes = F.interpolate(slopes, (height, width), mode="bicubic", align_corners=True)
    shapes = F.interpolate(shapes, (height + 8, width + 8), mode="nearest")
    corners = torch.randint(0, 9, (count, 2), generator=generator).tolist()
    shapes = torch.stack([one[:, y : y + height, x : x + width] for one, (y, x) in zip(shapes, corners, strict=True)])
    return (255 * (0.6 * slopes + 0.4 * shapes).clamp(0, 1)).byte()


def grey(count, value=128, channels=3):
    return torch.full((count, channels, 32, 32), value, dtype=torch.uint8)
