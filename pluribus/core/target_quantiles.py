"""Regression whose network predicts quantiles of its targets beside their mean, without any assumption about the noise.

The last layer gets 1 + Q times its outputs: the means μ, and for each level τ a block r. The quantiles of a row are the numbers

    r_τ + Φ⁻¹(τ)  in ascending order,

so they begin as those of standardised targets, and never cross. The loss of a row is the squared error of the mean and the
pinball loss of each quantile, whose expectation is least at the quantile of that level:

    (y − μ)² + Σ_τ ρ_τ(y − q_τ),     ρ_τ(u) = max(τu, (τ − 1)u)

Sorting never increases it, whatever y is: ρ_τ(y − q) = τ(y − q) + max(q − y, 0), and Σ τ q_τ is largest in ascending order.

Koenker & Bassett, "Regression Quantiles", 1978; Chernozhukov, Fernández-Val & Galichon, "Quantile and Probability Curves
Without Crossing", 2010.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .target_distribution import TargetDistribution, TargetHead, split_blocks
from .texts import quote

MOST = 99
"""Levels that a network may have."""


@dataclass(frozen=True)
class TargetQuantiles(TargetDistribution):
    """The network predicts the quantiles of its targets at these rising `levels`, and learns them by the pinball loss.

    >>> TargetQuantiles((0.05, 0.95))
    TargetQuantiles(levels=(0.05, 0.95))
    """

    option: ClassVar[str] = "quantiles"
    answers: ClassVar[str] = "means and quantiles"

    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        check_levels(self.levels)
        object.__setattr__(self, "levels", tuple(map(float, self.levels)))

    @property
    def starts(self) -> tuple[float, ...]:
        return tuple(find_normal_quantile(level) for level in self.levels)

    def make_head(self, layer: nn.Module) -> "QuantileHead":
        return QuantileHead(layer, self)

    def compute_loss(self, output: Tensor, target: Tensor) -> Tensor:
        return compute_quantile_loss(output, target, self.levels)

    def explain(self) -> str:
        levels = ", ".join(map(str, self.levels))
        return f"answers with means and the quantiles {levels}, and learns them by the squared error and the pinball loss"

    def to_json(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> "TargetQuantiles":
        levels = about.get("levels")
        if not isinstance(levels, list):
            raise ValueError(f"its quantiles must have a list of levels, got {quote(levels)}")
        return cls(tuple(levels))


def read_quantiles(quantiles: "TargetQuantiles | Sequence[float] | None") -> TargetQuantiles | None:
    """What `pluribus.ensemble(…, quantiles=…)` takes: rising levels, a `TargetQuantiles`, or None.

    Raises ValueError for anything else.

    >>> read_quantiles([0.1, 0.9]), read_quantiles(None)
    (TargetQuantiles(levels=(0.1, 0.9)), None)
    """
    if quantiles is None or isinstance(quantiles, TargetQuantiles):
        return quantiles
    values: Any = quantiles.tolist() if hasattr(quantiles, "tolist") else quantiles
    return TargetQuantiles(tuple(values) if isinstance(values, Sequence) and not isinstance(values, str) else values)


def check_levels(levels: Any) -> None:
    """Raise ValueError unless these are two numbers or more between 0 and 1, each larger than the one before."""
    fits = isinstance(levels, tuple) and 2 <= len(levels) <= MOST
    fits = fits and all(isinstance(n, Real) and 0 < float(n) < 1 for n in levels)
    if not fits or any(low >= high for low, high in itertools.pairwise(levels)):
        raise ValueError(
            f"quantiles must be 2 to {MOST} rising numbers between 0 and 1, the ends of an interval for example, as in 0.05 "
            f"and 0.95; got {quote(levels)}"
        )


def find_normal_quantile(level: float) -> float:
    """The quantile of the standard normal distribution, Φ⁻¹(level).

    >>> round(find_normal_quantile(0.975), 3)
    1.96
    """
    return math.sqrt(2) * torch.erfinv(torch.tensor(2 * level - 1, dtype=torch.double)).item()


class QuantileHead(TargetHead):
    """A last layer of 1 + Q times the outputs, as means and rising quantiles: `[B, …]` → `[B, (1 + Q)C, …]`."""

    def interpret(self, blocks: Sequence[Tensor]) -> Sequence[Tensor]:
        raised = [block + start for block, start in zip(blocks, self.distribution.starts, strict=True)]
        return torch.stack(raised).sort(0).values.unbind()


def compute_quantile_loss(output: Tensor, target: Tensor, levels: tuple[float, ...]) -> Tensor:
    """The mean over targets of the squared error and all pinball losses, of outputs `[B, (1 + Q)C, …]`, means first.

    Raises ValueError if the targets do not have the shape of the means.

    >>> compute_quantile_loss(torch.tensor([[1.0, -1.0, 2.0]]), torch.tensor([3.0]), (0.1, 0.9))  # 2² + 0.1 · 4 + 0.9 · 1
    tensor(5.3000)
    """
    target, mean, *quantiles = split_blocks(output, target, TargetQuantiles(levels))
    loss = (target - mean).square()
    for level, quantile in zip(levels, quantiles, strict=True):
        loss = loss + compute_pinball(target - quantile, level)
    return loss.mean()


def compute_pinball(error: Tensor, level: float) -> Tensor:
    """ρ_τ(u) = max(τu, (τ − 1)u) of every error u = y − q, in its shape.

    >>> compute_pinball(torch.tensor([2.0, -2.0]), 0.75)
    tensor([1.5000, 0.5000])
    """
    return torch.maximum(level * error, (level - 1) * error)
