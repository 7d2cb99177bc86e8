"""Masks from random bytes: exactly the comparison they stand for, and independent units."""

import pytest
import torch

from pluribus.core.noise import FEW_WORDS, RoundedRate, arrange_like, compare_lanes, draw_mask, draw_words, round_rate


def test_eight_lanes_of_a_word_are_compared_as_eight_bytes_would_be():
    values = torch.arange(256, dtype=torch.uint8)[torch.randperm(256)]
    for threshold in range(257):
        kept = compare_lanes(values.view(torch.long), RoundedRate(8, threshold))
        assert torch.equal(kept, (values.long() >= threshold).to(torch.uint8)), threshold


@pytest.mark.parametrize("threshold", [0, 1, 655, 32767, 32768, 32769, 65535, 65536])
def test_four_lanes_of_a_word_are_compared_as_four_numbers_of_sixteen_bits_would_be(threshold):
    values = torch.arange(-(2**15), 2**15).to(torch.int16)[torch.randperm(2**16)]
    kept = compare_lanes(values.view(torch.long), RoundedRate(16, threshold))
    assert torch.equal(kept.long(), (values.long() % 2**16 >= threshold).long())


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0])
def test_masks_drop_their_rate_and_neighbours_know_nothing_of_one_another(rate):
    near = round_rate(rate)
    assert abs(near.rate - rate) <= 0.02 * min(rate, 1 - rate)
    count = 1_000_003  # not a whole number of words
    kept = draw_mask(count, near).double()
    assert kept.shape == (count,)
    spread = (near.rate * (1 - near.rate) / count) ** 0.5
    assert 1 - kept.mean().item() == pytest.approx(near.rate, abs=5 * spread)
    for step in (1, 2, 7, 8, 64):
        both = ((1 - kept[step:]) * (1 - kept[:-step])).mean().item()
        assert both == pytest.approx(near.rate**2, abs=5 * near.rate / count**0.5)


def test_a_rate_that_sixteen_bits_cannot_say_is_not_rounded():
    assert round_rate(1e-5) is None
    assert round_rate(0.25) == RoundedRate(8, 64)


@pytest.mark.parametrize("count", [FEW_WORDS, FEW_WORDS + 1, 10 * FEW_WORDS])
def test_all_bits_of_a_word_are_ones_as_often_as_zeros(count):
    words = torch.cat([draw_words(count)[:count] for _ in range(2_000_000 // count)])
    ones = torch.stack([(words >> bit) & 1 for bit in range(64)]).double().mean(1)
    assert (ones - 0.5).abs().max() < 5 * 0.5 / len(words) ** 0.5


@pytest.mark.parametrize("threshold", [26, 128])
def test_words_at_the_corners_of_a_rectangle_know_nothing_of_one_another(threshold):
    """Such words are mixed from four numbers, and without the mixing the first three would say what the fourth is."""
    side, draws, rate = 512, 40, RoundedRate(8, threshold)
    found = torch.zeros(8, dtype=torch.double)
    for _ in range(draws):
        kept = compare_lanes(draw_words(side * side), rate).view(side, side, 8).double() - (1 - rate.rate)
        upper, lower = kept[torch.randperm(side)].chunk(2)
        pairs = upper * lower  # [side / 2, side, 8]
        left, right = pairs[:, torch.randperm(side)].chunk(2, dim=1)
        found += (left * right).mean((0, 1)) / draws
    spread = (rate.rate * (1 - rate.rate)) ** 2 / (draws * side * side / 4) ** 0.5
    assert found.abs().max() < 5 * spread


def test_the_same_seed_gives_the_same_mask():
    first, second = (torch.manual_seed(3) and draw_mask(100, RoundedRate(8, 26)) for _ in range(2))
    assert torch.equal(first, second)


def test_noise_lies_in_memory_as_what_it_meets():
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    found = arrange_like(torch.arange(720), (6, 2, 3, 4, 5), x.unsqueeze(0))
    assert found.shape == (6, 2, 3, 4, 5)
    assert found.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
    assert sorted(found.flatten().tolist()) == list(range(720))
    assert arrange_like(torch.arange(0), (6, 0, 3, 4, 5), x.unsqueeze(0)[:, :0]).shape == (6, 0, 3, 4, 5)
