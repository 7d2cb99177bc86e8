"""Cheap noise: dropout masks cut from random bytes, and noise that lies in memory as what it meets.

A uniform number for every unit costs several times the arithmetic that it decides about. A mask needs only to know on which
side of the rate it falls: eight random bits, compared eight units at a time inside one 64-bit integer,

    (b mod 128) + (128 − t)  has its highest bit  ⇔  b mod 128 ≥ t,     t = 256 · rate,

and the highest bit of b itself says whether b ≥ 128. So the rate is rounded to 1/256, and said: what is kept is scaled by the
rounded rate, so that means stay exact. Where rounding would change the rate, or what is left, by more than a fiftieth, it
takes sixteen bits; and a uniform number where these are too few, or on a device other than the CPU.

Torch draws random words on one core. So where many are needed, n of them are mixed from 2 √n that it draws, on all cores:

    w_ij = mix(a_i + b_j),     mix(s) = (s ⊕ (s ≫ 32)) · c,     c odd

Any three of the sums are independent; four are not if they stand at the corners of a rectangle. After the mixing a test of 2.6
million rectangles finds no trace of that (tests/core/test_noise.py).
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch

LANES = {8: torch.uint8, 16: torch.int16}
FEW_WORDS = 4096
"""As many words are drawn one by one."""
MULTIPLIER = -0x61C8864680B583EB
"""2⁶⁴ divided by the golden ratio, as a signed number."""


class RoundedRate(NamedTuple):
    """A rate of `threshold` / 2**`bits`."""

    bits: int
    threshold: int

    @property
    def rate(self) -> float:
        return self.threshold / 2**self.bits


@functools.cache
def round_rate(rate: float) -> RoundedRate | None:
    """In eight bits if they are enough, else in sixteen, else None.

    >>> round_rate(0.1), round_rate(0.01)
    (RoundedRate(bits=8, threshold=26), RoundedRate(bits=16, threshold=655))
    """
    for bits in LANES:
        found = RoundedRate(bits, round(rate * 2**bits))
        if abs(found.rate - rate) <= 0.02 * min(rate, 1 - rate):
            return found
    return None


def draw_mask(count: int, rate: RoundedRate) -> Tensor:
    """`count` numbers, 0 with the probability `rate` and else 1. `torch.manual_seed` fixes them."""
    return compare_lanes(draw_words(-(-count * rate.bits // 64)), rate)[:count]


def draw_words(count: int) -> Tensor:
    """At least `count` random words of 64 bits."""
    few = count <= FEW_WORDS
    side = count if few else math.isqrt(count - 1) + 1
    with no_dispatch():  # where processes share a batch, a draw of as many words as rows would pass for one of each row
        drawn = torch.empty(side if few else 2 * side, dtype=torch.long).random_(-(2**63), None)
    if few:
        return drawn
    first, second = drawn.split(side)
    words = (first.unsqueeze(1) + second).view(-1)
    return words.bitwise_xor_(words >> 32).mul_(MULTIPLIER)


def compare_lanes(words: Tensor, rate: RoundedRate) -> Tensor:
    """Of every lane of 64-bit words, whether it is at least the threshold: 1 or 0."""
    low, offset, ones, is_upper = find_lane_constants(rate)
    found = (words & low).add_(offset)
    found = found.bitwise_and_(words) if is_upper else found.bitwise_or_(words)
    return found.bitwise_right_shift_(rate.bits - 1).bitwise_and_(ones).view(LANES[rate.bits])


@functools.cache
def find_lane_constants(rate: RoundedRate) -> tuple[int, int, int, bool]:
    """In every lane: all bits but the highest, what is added to them, and one; and whether half or less is kept."""
    bits, half = rate.bits, 2 ** (rate.bits - 1)
    is_upper = rate.threshold > half  # else all that has the highest bit is kept
    least = rate.threshold - half if is_upper else rate.threshold
    return fill_lanes(half - 1, bits), fill_lanes(half - least, bits), fill_lanes(1, bits), is_upper


def fill_lanes(value: int, bits: int) -> int:
    """The same number in every lane of a signed 64-bit integer."""
    whole = sum(value << start for start in range(0, 64, bits))
    return whole - 2**64 if whole >= 2**63 else whole


def arrange_like(flat: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """Numbers in a row as a tensor of this shape, `[M, …]`, its axes in memory as those of `like`, `[1 or M, …]`."""
    if like.dim() != len(shape) or like.is_contiguous():
        return flat.view(*shape)
    inside, back = find_axis_order(tuple(shape), like.shape, like.stride())
    return flat.view(inside).permute(back)


@functools.lru_cache(maxsize=256)
def find_axis_order(
    shape: tuple[int, ...], like: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape in the order in which the axes lie in memory, and the permutation that leads from it to `shape`."""
    # The stride of a single row says nothing, and there may be more rows in `shape`: then rows come first, as they usually do.
    known = [math.inf if axis == 1 and like[1] == 1 else stride for axis, stride in enumerate(strides)]
    order = [0, *sorted(range(1, len(like)), key=known.__getitem__, reverse=True)]
    return tuple(shape[axis] for axis in order), tuple(order.index(axis) for axis in range(len(order)))
