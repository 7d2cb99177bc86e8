"""The region that an attack may use: a ball about each input, within the box of valid inputs. Both bounds hold exactly.

    L∞   |x_i − c_i| ≤ r · s_i,                low_i ≤ x_i ≤ high_i
    L2   sqrt(Σ_i ((x_i − c_i) / s_i)²) ≤ r,   low_i ≤ x_i ≤ high_i

c is the input, r the radius, and s the scale: one unit of r in units of x.
"""

from typing import Literal

import torch
from torch import Tensor

Norm = Literal["linf", "l2"]


class PerturbationRegion:
    """The ball about each input, within the box of valid inputs.

    `centre` holds the inputs `[B, …]`; `low`, `high` and `scale` have its shape; `radius` None is no ball.

    >>> zeros = torch.zeros(1, 2)
    >>> region = PerturbationRegion(zeros, zeros - 1, zeros + 1, zeros + 1, "linf", 0.5)
    >>> region.take_step(zeros, torch.tensor([[2.0, -0.1]]), 0.75)
    tensor([[ 0.5000, -0.5000]])
    """

    def __init__(self, centre: Tensor, low: Tensor, high: Tensor, scale: Tensor, norm: Norm, radius: float | None) -> None:
        self.centre, self.low, self.high, self.scale = centre, low, high, scale
        self.norm, self.radius = norm, radius

    def draw_start(self) -> Tensor:
        """Draw a point uniformly from the ball, and project it into the box: `[B, …]`."""
        radius = self.radius
        assert radius is not None
        if self.norm == "linf":
            return self.project(self.centre + radius * self.scale * (2 * torch.rand_like(self.centre) - 1))
        share = torch.rand_like(self.compute_norms(self.centre)) ** (1 / max(self.centre[0].numel(), 1))
        return self.project(self.centre + radius * share * self.scale * self.normalize(torch.randn_like(self.centre)))

    def take_step(self, x: Tensor, gradient: Tensor, length: float) -> Tensor:
        """Move x along the gradient: by `length` in every coordinate (L∞), or by that L2 length in all, and project it."""
        direction = gradient.sign() if self.norm == "linf" else self.normalize(gradient * self.scale)
        return self.project(x + length * self.scale * direction)

    def project(self, x: Tensor) -> Tensor:
        """Project into the ball and then into the box. The box holds the centre, so this never leaves the ball again."""
        if self.radius is not None:
            x = self.project_into_ball(x, self.radius)
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def project_into_ball(self, x: Tensor, radius: float) -> Tensor:
        """Project into the ball in double precision, and round towards the centre."""
        centre, scale = self.centre.double(), self.scale.double()
        change = (x.double() - centre) / scale
        if self.norm == "linf":
            change = change.clamp(-radius, radius)
        else:
            length = self.compute_norms(change)
            # The factor leaves a margin, because a norm that is computed elsewhere may round differently.
            change = torch.where(length > radius, change * ((1 - 1e-12) * radius / length.clamp_min(1e-300)), change)
        near = (centre + change * scale).to(x.dtype)
        # Rounding must not move a number out of the ball, not even by one bit.
        outside = (near.double() - centre).abs() > (change * scale).abs()
        return torch.where(outside, torch.nextafter(near, self.centre), near)

    def normalize(self, vectors: Tensor) -> Tensor:
        """Scale every row to length one; zero stays zero."""
        tiny = torch.finfo(vectors.dtype).tiny
        peak = vectors.abs().flatten(1).amax(1).view(-1, *(1 for _ in vectors.shape[1:]))
        vectors = vectors / peak.clamp_min(tiny)  # without this, squares of small gradients underflow to zero
        return vectors / self.compute_norms(vectors).clamp_min(tiny)

    @staticmethod
    def compute_norms(vectors: Tensor) -> Tensor:
        """Return the L2 norm of every row, `[B, 1, …]`."""
        return vectors.flatten(1).norm(dim=1).view(-1, *(1 for _ in vectors.shape[1:]))
