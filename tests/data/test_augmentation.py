import torch

from pluribus.data import Pixels
from pluribus.data.augmentation import PAD, alternate_flips, augment, draw_augmentation
from pluribus.data.batches import TensorBatches
from pluribus.data.dataset import Part


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


def test_alternating_flips_show_both_sides_in_two_epochs_and_half_of_the_images_flipped_in_one():
    """Of 50,000 rows half are flipped (σ = 0.0022; 4 are allowed), whatever the seed; neighbours and seeds are independent."""
    rows = torch.arange(50_000)
    found = {seed: alternate_flips(rows, 0, seed).double() for seed in (0, 1, 123_456)}
    for seed, flips in found.items():
        assert abs(flips.mean() - 0.5) < 4 * 0.0022
        assert abs(torch.corrcoef(torch.stack([flips[:-1], flips[1:]]))[0, 1]) < 4 / 50_000**0.5
        assert torch.equal(alternate_flips(rows, 1, seed).double(), 1 - flips)
        assert torch.equal(alternate_flips(rows, 2, seed).double(), flips)
    assert abs(torch.corrcoef(torch.stack([found[0], found[1]]))[0, 1]) < 4 / 50_000**0.5


def test_batches_flip_by_turns():
    x = torch.arange(64, dtype=torch.uint8).view(1, 1, 8, 8).repeat(40, 1, 1, 1)
    options = {"shuffled": True, "augmentation": "small-crop-alternate", "seed": 3}
    sides = []
    for epoch in (0, 1):
        batches = TensorBatches(Part(x, torch.arange(40)), 10, Pixels(), **options)
        batches.epoch = epoch
        is_flipped = torch.zeros(40)
        for batch in batches:
            is_flipped[batch.y] = (batch.x[:, 0, 4, 3] > batch.x[:, 0, 4, 4]).float()
        sides.append(is_flipped)
    assert torch.equal(sides[0] + sides[1], torch.ones(40))
    assert 0 < sides[0].sum() < 40
