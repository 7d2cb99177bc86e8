"""Regression whose network predicts the noise of its targets: a mean and a variance for every row.

The last layer gets twice its outputs. The first half are the means μ, the second half r become the variances

    σ² = exp(b tanh(r / b)),  b = 30,

which is exp(r) near zero and can neither vanish nor overflow. The loss of a row is the Gaussian negative log-likelihood,
weighted by a power of the variance through which no gradient flows:

    ⌊σ^2β⌋ (½ log 2πσ² + (y − μ)² / 2σ²)

β = 0 is the plain likelihood. Its gradient with respect to μ is divided by σ², so rows that are fitted badly are given a large
variance and are then hardly learnt; β = 1 gives μ the gradient of the squared error, and ½ lies between the two.

Nix & Weigend, "Estimating the mean and variance of the target probability distribution", 1994; Seitzer et al., "On the Pitfalls
of Heteroscedastic Uncertainty Estimation with Probabilistic Neural Networks", ICLR 2022, eq. 4.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .spec import require_share
from .target_distribution import TargetDistribution, TargetHead, split_blocks
from .texts import quote

BOUND = 30.0
"""Of the logarithm of a variance: standard deviations from 3e-7 to 3e6."""
NAMES = {"gaussian": 0.0, "beta-nll": 0.5}
"""The losses by name, each with its β."""


@dataclass(frozen=True)
class TargetNoise(TargetDistribution):
    """The network predicts the noise of its targets, and learns it by the β-NLL; `beta` 0 is the Gaussian likelihood itself.

    >>> TargetNoise(beta=0.5)
    TargetNoise(beta=0.5)
    """

    option: ClassVar[str] = "noise"
    answers: ClassVar[str] = "means and variances"

    beta: float = NAMES["beta-nll"]

    def __post_init__(self) -> None:
        require_share("beta", self.beta)

    @property
    def starts(self) -> tuple[float, ...]:
        return (1.0,)

    def make_head(self, layer: nn.Module) -> "NoiseHead":
        return NoiseHead(layer, self)

    def compute_loss(self, output: Tensor, target: Tensor) -> Tensor:
        return compute_gaussian_loss(output, target, self.beta)

    def explain(self) -> str:
        loss = f"β-NLL with β = {self.beta:g}" if self.beta else "Gaussian likelihood"
        return f"answers with means and variances, and learns both by the {loss}"

    def to_json(self) -> dict[str, Any]:
        return {"beta": self.beta}

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> "TargetNoise":
        beta = about.get("beta")
        if not isinstance(beta, (int, float)) or isinstance(beta, bool) or not 0 <= beta <= 1:
            raise ValueError(f"its noise must have a beta from 0 to 1, got {quote(beta)}")
        return cls(float(beta))


def read_noise(noise: "TargetNoise | str | None") -> TargetNoise | None:
    """What `pluribus.ensemble(…, noise=…)` takes: a name, a `TargetNoise`, or None. Raises ValueError for anything else.

    >>> read_noise("gaussian"), read_noise("none")
    (TargetNoise(beta=0.0), None)
    """
    if noise is None or isinstance(noise, TargetNoise):
        return noise
    if noise == "none":
        return None
    if noise not in NAMES:
        raise ValueError(f"noise must be none, {', '.join(NAMES)} or a TargetNoise, got {noise!r}")
    return TargetNoise(NAMES[noise])


class NoiseHead(TargetHead):
    """A last layer of twice the outputs, as means and variances: `[B, …]` → `[B, 2C, …]`, the means first."""

    def interpret(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        return [(BOUND * torch.tanh(raw / BOUND)).exp() for raw in blocks]


def compute_gaussian_loss(output: Tensor, target: Tensor, beta: float) -> Tensor:
    """The mean β-NLL of outputs `[B, 2C, …]`, means and then variances, in nats; `beta` 0 is the Gaussian NLL.

    Raises ValueError if the targets do not have the shape of the means.

    >>> compute_gaussian_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([0.0]), beta=0.0)  # ½ log 2π
    tensor(0.9189)
    """
    target, mean, variance = split_blocks(output, target, TargetNoise(beta))
    loss = 0.5 * (2 * math.pi * variance).log() + (target - mean).square() / (2 * variance)
    return (loss * variance.detach() ** beta if beta else loss).mean()
