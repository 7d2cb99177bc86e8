import torch

from pluribus.data.augmentation import PAD, augment, draw_augmentation


def by_hand(image, down, right, mirrored, reflects=False):
    """One image `[C, H, W]`, pixel by pixel."""
    _channels, height, width = image.shape
    out = torch.zeros_like(image)
    for y in range(height):
        for x in range(width):
            from_y, from_x = y + down - PAD, x + right - PAD
            if reflects:
                from_y, from_x = (abs(p) if p < n else 2 * (n - 1) - p for p, n in ((from_y, height), (from_x, width)))
            if 0 <= from_y < height and 0 <= from_x < width:
                out[:, y, x] = image[:, from_y, from_x]
    return out.flip(2) if mirrored else out


def test_every_image_is_shifted_and_mirrored_as_drawn():
    images = torch.randint(0, 256, (64, 3, 9, 7), dtype=torch.uint8)
    drawn = draw_augmentation("crop-flip", 64, torch.Generator().manual_seed(0))
    expected = torch.stack([by_hand(image, *row) for image, row in zip(images, drawn.tolist(), strict=True)])
    assert torch.equal(augment(images, drawn), expected)
    small = draw_augmentation("small-crop-flip", 64, torch.Generator().manual_seed(0))
    expected = torch.stack([by_hand(image, *row, reflects=True) for image, row in zip(images, small.tolist(), strict=True)])
    assert torch.equal(augment(images, small, "small-crop-flip"), expected)


def test_every_shift_is_as_likely_as_every_other():
    drawn = draw_augmentation("crop-flip", 81_000, torch.Generator().manual_seed(0))
    cells = torch.bincount(drawn[:, 0] * 9 + drawn[:, 1], minlength=81)
    assert len(cells) == 81
    assert (cells - 1000).abs().max() < 160  # five standard deviations of √1000
    assert abs(drawn[:, 2].float().mean() - 0.5) < 0.01


def test_what_is_not_asked_for_is_not_done():
    images = torch.randint(0, 256, (16, 1, 8, 8), dtype=torch.uint8)
    assert torch.equal(augment(images, draw_augmentation("none", 16)), images)
    assert set(draw_augmentation("flip", 99)[:, :2].flatten().tolist()) == {PAD}
    assert set(draw_augmentation("crop", 99)[:, 2].tolist()) == {0}
    small = draw_augmentation("small-crop-flip", 999)
    assert set(small[:, :2].flatten().tolist()) == set(range(PAD - 2, PAD + 3))
    assert set(small[:, 2].tolist()) == {0, 1}
