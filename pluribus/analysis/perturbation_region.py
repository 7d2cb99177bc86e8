"""Where an attack may take an input: into a ball about it, and within the box of valid inputs; both hold exactly.

    L∞   |x_i − c_i| ≤ r · s_i,                low_i ≤ x_i ≤ high_i
    L2   sqrt(Σ_i ((x_i − c_i) / s_i)²) ≤ r,   low_i ≤ x_i ≤ high_i

c is the input, r the radius, and s the scale: one unit of r in units of x.
"""

from typing import Literal

import torch
from torch import Tensor

Norm = Literal["linf", "l2"]


class PerturbationRegion:
    """Where inputs may go: a ball about each, within the box."""

    def __init__(self, centre: Tensor, low: Tensor, high: Tensor, scale: Tensor, norm: Norm, radius: float | None) -> None:
        self.centre, self.low, self.high, self.scale = centre, low, high, scale
        self.norm, self.radius = norm, radius

    def start(self) -> Tensor:
        """A point drawn uniformly from the ball, put back into the box."""
        radius = self.radius
        assert radius is not None
        if self.norm == "linf":
            return self.within(self.centre + radius * self.scale * (2 * torch.rand_like(self.centre) - 1))
        share = torch.rand_like(self.lengths(self.centre)) ** (1 / max(self.centre[0].numel(), 1))
        return self.within(self.centre + radius * share * self.scale * self.unit(torch.randn_like(self.centre)))

    def step(self, x: Tensor, slope: Tensor, length: float) -> Tensor:
        """Up the slope: by `length` in every coordinate (L∞), or in all together (L2)."""
        direction = slope.sign() if self.norm == "linf" else self.unit(slope * self.scale)
        return self.within(x + length * self.scale * direction)

    def within(self, x: Tensor) -> Tensor:
        """The ball first: going back into the box, which holds the centre, then makes no difference larger."""
        if self.radius is not None:
            x = self.in_ball(x, self.radius)
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def in_ball(self, x: Tensor, radius: float) -> Tensor:
        centre, scale = self.centre.double(), self.scale.double()
        change = (x.double() - centre) / scale
        if self.norm == "linf":
            change = change.clamp(-radius, radius)
        else:
            length = self.lengths(change)
            # A hair inside: the norm that somebody computes to check rounds otherwise.
            change = torch.where(length > radius, change * ((1 - 1e-12) * radius / length.clamp_min(1e-300)), change)
        near = (centre + change * scale).to(x.dtype)
        # Rounding must not carry a number out of the ball, not by one bit.
        outside = (near.double() - centre).abs() > (change * scale).abs()
        return torch.where(outside, torch.nextafter(near, self.centre), near)

    def unit(self, vectors: Tensor) -> Tensor:
        """Rows of length one; zero stays zero."""
        tiny = torch.finfo(vectors.dtype).tiny
        peak = vectors.abs().flatten(1).amax(1).view(-1, *(1 for _ in vectors.shape[1:]))
        vectors = vectors / peak.clamp_min(tiny)  # else the squares of small gradients are zero
        return vectors / self.lengths(vectors).clamp_min(tiny)

    @staticmethod
    def lengths(vectors: Tensor) -> Tensor:
        """The L2 norm of every row, `[B, 1, …]`."""
        return vectors.flatten(1).norm(dim=1).view(-1, *(1 for _ in vectors.shape[1:]))
