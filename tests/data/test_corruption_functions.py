import colorsys
import io

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage, stats

from pluribus.data.corruption_filters import ImageDraws, draw_plasma, measure_distances, zoom
from pluribus.data.corruptions import SEVERITIES, corrupt

from .pictures import grey, scenes

BLURS = ("defocus-blur", "glass-blur", "motion-blur", "zoom-blur", "gaussian-blur")


def as_bytes(values):
    return (torch.as_tensor(values).clamp(0, 255) + 0.5).byte()


def assert_rounded(out, values):
    """Either of two bytes will do where a value lies half-way between them."""
    assert (out - torch.as_tensor(values).clamp(0, 255)).abs().max() <= 0.5 + 1e-6


def through_pillow(images, change):
    pictures = [Image.fromarray(image.permute(1, 2, 0).squeeze(-1).numpy()) for image in images]
    changed = [torch.from_numpy(np.array(change(picture))) for picture in pictures]
    return torch.stack([one.view(*images.shape[2:], -1).permute(2, 0, 1) for one in changed])


# Noise. Tolerances are five standard errors over n values; rounding to bytes adds a variance of 1/12.


@pytest.mark.parametrize(
    ("kind", "stds"), [("gaussian-noise", (0.04, 0.06, 0.08, 0.09, 0.10)), ("speckle-noise", (0.06, 0.1, 0.12, 0.16, 0.2))]
)
def test_noise_has_the_stated_deviation(kind, stds):
    images = grey(40)
    n = images.numel()
    for severity, std in zip(SEVERITIES, stds, strict=True):
        noise = corrupt(images, kind, severity).double() - 128
        expected = ((128 if kind == "speckle-noise" else 255) ** 2 * std**2 + 1 / 12) ** 0.5
        assert abs(noise.mean()) < 5 * expected / n**0.5
        assert abs(noise.std() - expected) < 5 * expected / (2 * n) ** 0.5


def test_shot_noise_is_poisson():
    images = grey(40)
    n = images.numel()
    for severity, photons in zip(SEVERITIES, (500, 250, 100, 75, 50), strict=True):
        out = corrupt(images, "shot-noise", severity).double()
        rate = 128 / 255 * photons
        counts = np.arange(2 * photons)
        chance, levels = stats.poisson.pmf(counts, rate), as_bytes(255 * counts / photons).double().numpy()
        mean = (chance * levels).sum()
        variance = (chance * (levels - mean) ** 2).sum()  # rounding included: at 250 photons it adds 3%
        assert abs(mean - 128) < 0.6
        assert abs(variance / (128 * 255 / photons) - 1) < 0.04
        assert abs(out.mean() - mean) < 5 * (variance / n) ** 0.5
        assert abs(out.var() / variance - 1) < 5 * ((2 + 1 / rate) / n) ** 0.5


def test_impulse_noise_turns_the_stated_share_of_values_black_or_white():
    images = grey(40)
    n = images.numel()
    for severity, share in zip(SEVERITIES, (0.01, 0.02, 0.03, 0.05, 0.07), strict=True):
        out = corrupt(images, "impulse-noise", severity)
        assert set(out.unique().tolist()) == {0, 128, 255}
        for extreme in (0, 255):
            assert abs((out == extreme).double().mean() - share / 2) < 5 * (share / 2 / n) ** 0.5


# Blurs


@pytest.mark.parametrize("kind", [*BLURS, "elastic-transform", "pixelate"])
@pytest.mark.parametrize("value", [0, 77, 255])
def test_a_constant_image_stays_constant(kind, value):
    for severity in SEVERITIES:
        assert (corrupt(grey(3, value), kind, severity) == value).all()


@pytest.mark.parametrize("kind", BLURS)
def test_blurs_keep_the_mean(kind):
    images = scenes(60)
    # Edge pixels count more or less than others where blurs repeat them (by a level or so), and zooming leaves the rim out.
    tolerance = 0.5 if kind in ("defocus-blur", "gaussian-blur") else 1.5
    for severity in SEVERITIES:
        drift = corrupt(images, kind, severity).double().mean() - images.double().mean()
        assert abs(drift) < tolerance


@pytest.mark.parametrize("size", [(32, 32), (8, 11)])
def test_gaussian_blur_is_scipys(size):
    images = scenes(3, 3, *size)
    for severity, sigma in zip(SEVERITIES, (0.4, 0.6, 0.7, 0.8, 1), strict=True):
        expected = ndimage.gaussian_filter(images.double().numpy(), (0, 0, sigma, sigma), mode="nearest")
        assert_rounded(corrupt(images, "gaussian-blur", severity), expected)


def test_defocus_blur_is_a_convolution_with_a_softened_disk():
    images = scenes(3)
    cross, square = ndimage.generate_binary_structure(2, 1) / 5, np.full((3, 3), 1 / 9)
    dot = np.zeros((3, 3))
    dot[1, 1] = 1
    for severity, disk, softness in zip(SEVERITIES, (dot, dot, dot, cross, square), (0.4, 0.5, 0.6, 0.2, 0.1), strict=True):
        bell = np.exp(-0.5 * (np.arange(-1, 2) / softness) ** 2)
        bell = np.outer(bell, bell) / bell.sum() ** 2
        kernel = ndimage.convolve(np.pad(disk, 1), bell, mode="constant")
        expected = ndimage.convolve(images.double().numpy(), kernel[None, None], mode="mirror")
        assert_rounded(corrupt(images, "defocus-blur", severity), expected)


def test_glass_blur_moves_pixels_as_the_published_loop_does():
    """The loop assigns views of one array to each other; severity 1 has no blur to speak of, so every pixel can be traced."""
    image = torch.arange(32 * 32).view(1, 1, 32, 32)
    coded = torch.cat([image // 32 * 8, image % 32 * 8, image * 0], dim=1).byte()
    out = corrupt(coded, "glass-blur", 1)[0]
    up, left = torch.arange(32).view(-1, 1) - out[0] // 8, torch.arange(32) - out[1] // 8
    traced = coded[0].permute(1, 2, 0).numpy().copy()
    for row in range(31, 1, -1):
        for column in range(31, 1, -1):
            there = row - int(up[row, column]), column - int(left[row, column])
            traced[row, column], traced[there] = traced[there], traced[row, column]
    assert np.array_equal(out.permute(1, 2, 0).numpy(), traced)
    for moved in (up[2:, 2:], left[2:, 2:]):
        assert set(moved.unique().tolist()) == {0, 1}
        assert abs(moved.double().mean() - 0.5) < 5 * 0.5 / 30
    assert not up[:2].any()
    assert not left[:, :2].any()


def test_motion_blur_draws_a_point_out_into_half_a_gaussian_on_a_line():
    points = grey(200, 0, 1)
    points[:, :, 16, 16] = 255
    out = corrupt(points, "motion-blur", 5).double() / 255  # 19 pixels, σ = 2.5
    weights = np.exp(-0.5 * (np.arange(19) / 2.5) ** 2)
    weights /= weights.sum()
    assert out[:, 0, 16, 16].sub(weights[0]).abs().max() < 0.003  # half a byte
    across = out.sum(2)[:, 0]  # a line closer to the horizontal has one pixel a column, or two steps round to the same
    assert across[:, 17:].abs().max() == 0  # it goes to one side
    rows, columns = torch.meshgrid(torch.arange(32.0) - 16, torch.arange(32.0) - 16, indexing="ij")
    slopes = (out[:, 0] * rows).sum((1, 2)) / (out[:, 0] * columns).sum((1, 2))
    angles = torch.rad2deg(torch.atan(slopes))
    assert angles.abs().max() < 47  # whole pixels shift an angle a little
    assert angles.mean().abs() < 5 * 26 / 200**0.5  # even from −45° to 45°: a deviation of 26°
    assert abs(angles.std() - 26) < 4


def test_zooming_is_scipys():
    images = scenes(2).double()
    for factor in (1, 1.07, 1.25, 1.75, 2.25):
        kept = int(np.ceil(32 / factor))
        top = (32 - kept) // 2
        grown = ndimage.zoom(images[..., top : top + kept, top : top + kept].numpy(), (1, 1, factor, factor), order=1)
        trim = (grown.shape[-1] - 32) // 2
        expected = torch.from_numpy(grown)[..., trim : trim + 32, trim : trim + 32]
        torch.testing.assert_close(zoom(images, factor), expected)


# Weather


def test_fog_is_a_cloud_from_0_to_1_and_smoother_with_more_decay():
    rough, smooth = (draw_plasma(ImageDraws(range(50)), 32, 32, decay) for decay in (1.75, 3))
    for cloud in (rough, smooth):
        assert torch.equal(cloud.amin((1, 2, 3)), torch.zeros(50, dtype=torch.double))
        assert torch.equal(cloud.amax((1, 2, 3)), torch.ones(50, dtype=torch.double))
    assert smooth.diff(n=2, dim=3).square().mean() < 0.5 * rough.diff(n=2, dim=3).square().mean()


def test_the_middle_of_a_cloud_without_finer_noise_is_the_mean_of_its_neighbours():
    cloud = draw_plasma(ImageDraws([0]), 16, 16, decay=1e4)[0, 0]  # after the first round nothing is added
    for step in (8, 4, 2):
        half = step // 2
        corners = cloud[::step, ::step]
        middles = (corners + corners.roll(-1, 0) + corners.roll(-1, 1) + corners.roll((-1, -1), (0, 1))) / 4
        torch.testing.assert_close(cloud[half::step, half::step], middles, atol=1e-6, rtol=0)
        sides = (corners + corners.roll(-1, 1) + middles + middles.roll(1, 0)) / 4
        torch.testing.assert_close(cloud[::step, half::step], sides, atol=1e-6, rtol=0)


def test_fog_on_white_goes_down_to_its_thickness():
    for severity, thickness in zip(SEVERITIES, (0.2, 0.5, 0.75, 1, 1.5), strict=True):
        out = corrupt(grey(10, 255), "fog", severity)  # (1 + t·cloud) / (1 + t), a cloud from 0 to 1
        assert_rounded(out.amin((1, 2, 3)), torch.full((10,), 255 / (1 + thickness)).double())
        assert (out.amax((1, 2, 3)) == 255).all()


def test_frost_keeps_and_adds_the_stated_shares():
    mild = corrupt(grey(10, 0), "frost", 1).double() / 0.2
    for severity, (kept, added) in zip(SEVERITIES, ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)), strict=True):
        alone, on_grey = (corrupt(grey(10, value), "frost", severity).double() for value in (0, 100))
        assert (alone - added * mild).abs().max() < 0.5 * (1 + added / 0.2) + 1e-6  # roundings
        assert (on_grey - alone - 100 * kept).abs().max() <= 1


def test_snow_pales_what_no_flake_hides():
    for severity, kept in zip(SEVERITIES, (0.95, 0.9, 0.9, 0.85, 0.8), strict=True):
        out = corrupt(grey(100, 0), "snow", severity).double()
        assert abs(out.min() - 255 * (1 - kept) * 0.5) < 1  # black becomes half grey for the share that is not kept


def test_fog_never_brightens_the_brightest_and_leaves_black_images_black():
    images = scenes(20)
    for severity in SEVERITIES:
        assert (corrupt(images, "fog", severity).amax((1, 2, 3)) <= images.amax((1, 2, 3))).all()
        assert not corrupt(grey(2, 0), "fog", severity).any()


@pytest.mark.parametrize("kind", ["snow", "frost"])
def test_snow_and_frost_are_light_on_black(kind):
    out = corrupt(grey(20, 0), kind, 3).double() / 255
    assert 0.02 < out.mean() < 0.4
    assert out.std((2, 3)).min() > 0.01  # not an even veil


def test_mud_is_brown_and_water_is_pale():
    mud = corrupt(grey(30, 255), "spatter", 5).flatten(2)
    assert (mud.amin(2) == torch.tensor([63, 42, 20], dtype=torch.uint8)).all(1).any()
    water = corrupt(grey(30, 0), "spatter", 3).double().flatten(2)
    torch.testing.assert_close(
        water.amax(2)[:, 0] / water.amax(2)[:, 1], torch.full((30,), 175 / 238).double(), atol=0.01, rtol=0
    )
    assert torch.equal(water.amax(2), (0.5 * torch.tensor([175.0, 238.0, 238.0]).double() + 0.5).floor().expand(30, -1))


def test_distances_are_scipys():
    marked = torch.rand(4, 1, 20, 31, generator=torch.Generator().manual_seed(0)) < 0.01
    expected = np.stack([ndimage.distance_transform_edt(~one) for one in marked.numpy()[:, 0]])
    torch.testing.assert_close(measure_distances(marked, 9)[:, 0], torch.from_numpy(expected).clamp(max=9))


# Digital


def test_contrast_shrinks_values_towards_each_channels_mean():
    images = scenes(1, 3, 8, 8)
    for severity, kept in zip(SEVERITIES, (0.75, 0.5, 0.4, 0.3, 0.15), strict=True):
        mean = images.double().mean((2, 3), keepdim=True)
        assert_rounded(corrupt(images, "contrast", severity), mean + kept * (images - mean))


def in_hsv(images, change):
    """Every pixel through the standard library's HSV."""
    out = images.double() / 255
    for image in out:
        for row in range(image.shape[1]):
            for column in range(image.shape[2]):
                hue, saturation, value = colorsys.rgb_to_hsv(*image[:, row, column].tolist())
                image[:, row, column] = torch.tensor(colorsys.hsv_to_rgb(hue, *change(saturation, value)), dtype=torch.double)
    return 255 * out


def test_brightness_raises_the_value_of_hsv():
    images = scenes(2, 3, 8, 8)
    images[0, :, 0, 0] = 0
    for severity, shift in zip(SEVERITIES, (0.05, 0.1, 0.15, 0.2, 0.3), strict=True):
        expected = in_hsv(images, lambda saturation, value, shift=shift: (saturation, min(value + shift, 1)))
        assert_rounded(corrupt(images, "brightness", severity), expected)
        grey_ones = images[:, :1]
        assert_rounded(corrupt(grey_ones, "brightness", severity), grey_ones + 255 * shift)


def test_saturate_changes_the_saturation_of_hsv():
    images = scenes(2, 3, 8, 8)
    images[0, :, 0, 0], images[0, :, 0, 1] = 0, 90
    for severity, (factor, shift) in zip(SEVERITIES, ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)), strict=True):
        expected = in_hsv(images, lambda s, value, factor=factor, shift=shift: (min(s * factor + shift, 1), value))
        assert_rounded(corrupt(images, "saturate", severity), expected)
        assert torch.equal(corrupt(images[:, :1], "saturate", severity), images[:, :1])


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 17, 40)], ids=str)
def test_pixelate_is_pillows_box_filter(shape):
    images = scenes(4, *shape)
    (height, width), box = shape[1:], Image.Resampling.BOX
    for severity, share in zip(SEVERITIES, (0.95, 0.9, 0.85, 0.75, 0.65), strict=True):
        small = (int(width * share), int(height * share))
        expected = through_pillow(images, lambda image, small=small: image.resize(small, box).resize((width, height), box))
        assert torch.equal(corrupt(images, "pixelate", severity), expected)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)], ids=str)
def test_jpeg_compression_is_pillows(shape):
    def there_and_back(image, quality):
        image.save(file := io.BytesIO(), "JPEG", quality=quality)
        return Image.open(file)

    images = scenes(4, *shape)
    for severity, quality in zip(SEVERITIES, (80, 65, 58, 50, 40), strict=True):
        expected = through_pillow(images, lambda image, quality=quality: there_and_back(image, quality))
        assert torch.equal(corrupt(images, "jpeg-compression", severity), expected)


def test_elastic_transform_at_severity_1_is_one_affine_map():
    """Of an image that is a plane, away from the edges, a plane remains, steeper or flatter."""
    ramp = (4 * torch.arange(32) + 3 * torch.arange(32).view(-1, 1)).byte().expand(20, 1, 32, 32)
    out = corrupt(ramp, "elastic-transform", 1)[:, 0, 8:24, 8:24].double()
    assert out.diff(n=2, dim=1).abs().max() <= 2  # bytes: half a level each of three roundings, and of one twice
    assert out.diff(n=2, dim=2).abs().max() <= 2
    assert (out - ramp[:, 0, 8:24, 8:24]).abs().amax((1, 2)).min() > 0
    bent = corrupt(ramp, "elastic-transform", 5)[:, 0, 8:24, 8:24].double()
    assert bent.diff(n=2, dim=1).abs().mean() > 2 * out.diff(n=2, dim=1).abs().mean()
