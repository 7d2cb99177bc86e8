"""Cheap noise: dropout masks cut from random bytes, and noise that lies in memory as what it meets.

A uniform number for every unit costs several times the arithmetic that it decides about. A mask needs only to know on which
side of the rate it falls: eight random bits, compared eight units at a time inside one 64-bit integer,

    (b mod 128) + (128 − t)  has its highest bit  ⇔  b mod 128 ≥ t,     t = 256 · rate,

and the highest bit of b itself says whether b ≥ 128. So the rate is rounded to 1/256, and said: what is kept is scaled by the
rounded rate, so that means stay exact. Where rounding would change the rate, or what is left, by more than a fiftieth, it
takes sixteen bits; and a uniform number where these are too few, or on a device other than the CPU.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

LANES = {8: torch.uint8, 16: torch.int16}


class RoundedRate(NamedTuple):
    """A rate of `threshold` / 2**`bits`."""

    bits: int
    threshold: int

    @property
    def rate(self) -> float:
        return self.threshold / 2**self.bits


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
    """`count` numbers, 0 with the probability `rate` and else 1.

    NumPy makes random words in half the time that torch takes. Its seed is drawn by torch, so that `torch.manual_seed` fixes
    masks, too.
    """
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw(-(-count * rate.bits // 64))
    return compare_lanes(torch.from_numpy(words.view(np.int64)), rate)[:count]


def compare_lanes(words: Tensor, rate: RoundedRate) -> Tensor:
    """Of every lane of 64-bit words, whether it is at least the threshold: 1 or 0."""
    bits, half = rate.bits, 2 ** (rate.bits - 1)
    upper = rate.threshold > half  # then only what has the highest bit can be kept; else all of that is
    least = rate.threshold - half if upper else rate.threshold
    found = (words & fill_lanes(half - 1, bits)).add_(fill_lanes(half - least, bits))
    found = found.bitwise_and_(words) if upper else found.bitwise_or_(words)
    return found.bitwise_right_shift_(bits - 1).bitwise_and_(fill_lanes(1, bits)).view(LANES[bits])


def fill_lanes(value: int, bits: int) -> int:
    """The same number in every lane of a signed 64-bit integer."""
    whole = sum(value << start for start in range(0, 64, bits))
    return whole - 2**64 if whole >= 2**63 else whole


def arrange_like(flat: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """Numbers in a row as a tensor of this shape, `[M, …]`, its axes in memory as those of `like`, `[1 or M, …]`."""
    if like.dim() != len(shape) or like.is_contiguous():
        return flat.view(*shape)
    # The stride of a single row says nothing, and there may be more rows in `shape`: then rows come first, as they usually do.
    strides = [math.inf if axis == 1 and like.shape[1] == 1 else like.stride(axis) for axis in range(like.dim())]
    order = [0, *sorted(range(1, like.dim()), key=strides.__getitem__, reverse=True)]
    return flat.view([shape[axis] for axis in order]).permute([order.index(axis) for axis in range(len(order))])
