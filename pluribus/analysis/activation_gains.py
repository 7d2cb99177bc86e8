"""Activation gains β², and the initialisation of an inner ensemble that follows from them.

    β² = E[f(y)²] / E[y²],    y ~ N(0, σ²)                                                            (lemma A.2, eq. 23)

is the part of a response's second moment that the activation f passes on. A layer of ordinary weights keeps the size of its
responses if n β² Var[w] = 1, n = fan_in; the mean of m copies does if

    (1/m) n β² Var[w_i] = 1,    so Var[w_i] = m / (β² n) = m · gain² / n                                           (eq. 10)

PyTorch's *gain* (`torch.nn.init.calculate_gain`) is 1/β. For the identity, ReLU and leaky ReLU it is exactly that, for any σ.
Its gain of tanh, 5/3, is near 1/β = 1.593 at σ = 1; those of sigmoid (1, and 1/β = 1.846) and SELU (3/4, and 1/β = 1) follow
other rules.

The lemma replaces f by its first-order expansion at zero (eq. 24). That is exact for positively homogeneous f, which have two
slopes at zero (ReLU: β² = ½), and wrong otherwise: it says 1 for tanh, of which 0.394 is true at σ = 1.

The mean of copies with the variance of eq. 10 has the variance gain²/n: it is an ordinary layer as Kaiming He et al. (2015)
start it. The variance reduction of 1/m in each layer (eq. 8) is cancelled there.

Mohamed et al., "Inner Ensemble Networks: Average Ensemble as an Effective Regularizer", 2020, section 3.1, appendix A.2.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from ..core.spec import require_count
from ..core.suggestions import describe_unknown
from .normal_quadrature import integrate_normal

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: Mapping[str, Activation] = {
    "identity": lambda y: y,
    "relu": F.relu,
    "leaky-relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
"""Common activations by name, with PyTorch's default options: the slope of leaky ReLU is 0.01."""


def find_activation(activation: str | Activation) -> Activation:
    """Return the activation of this name, or the function as it is."""
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(describe_unknown("activation", activation, ACTIVATIONS))
    return ACTIVATIONS[activation]


def compute_activation_gain(activation: str | Activation, variance: float = 1.0) -> float:
    """Return β² = E[f(y)²] / E[y²] for y ~ N(0, variance), by quadrature in double precision.

    Args:
        activation: A name of `ACTIVATIONS`, or a function of a tensor, element by element.
        variance: The variance of the responses y. It is of no matter to positively homogeneous activations.

    Raises:
        ValueError: The variance is not positive, or there is no such activation.

    >>> [round(compute_activation_gain(name), 4) for name in ("relu", "tanh", "gelu")]
    [0.5, 0.3943, 0.4252]
    """
    _require_positive("variance", variance)
    f, scale = find_activation(activation), math.sqrt(variance)
    return integrate_normal(lambda z: f(scale * z).square()) / variance


def expand_activation_gain(activation: str | Activation, variance: float = 1.0) -> float:
    """Return β² by the first-order expansion of the paper: f(0)²/variance + f'(0)² (eq. 25).

    Where f has a kink at zero, f'(0)² is the mean of the squared slopes on both sides, since half of the responses are on each.

    >>> expand_activation_gain("relu"), round(expand_activation_gain("tanh"), 4), round(expand_activation_gain("sigmoid"), 4)
    (0.5, 1.0, 0.3125)
    """
    _require_positive("variance", variance)
    f = find_activation(activation)
    sides = torch.tensor([-1e-12, 1e-12], dtype=torch.double, requires_grad=True)
    slopes = torch.autograd.grad(f(sides).sum(), sides)[0]
    at_zero = f(torch.zeros((), dtype=torch.double)).item()
    return at_zero**2 / variance + slopes.square().mean().item()


def compute_torch_gain(activation: str | Activation, variance: float = 1.0) -> float:
    """Return the gain in PyTorch's convention, 1/β: the number that `torch.nn.init.calculate_gain` has for ReLU.

    >>> round(compute_torch_gain("relu"), 4), round(compute_torch_gain("gelu"), 4)
    (1.4142, 1.5335)
    """
    return compute_activation_gain(activation, variance) ** -0.5


def compute_copy_variance(copies: int, fan_in: int, gain: float) -> float:
    """Return the variance of a weight of each copy, m · gain² / fan_in (eq. 10).

    Args:
        copies: m, the number of copies that are averaged.
        fan_in: How many inputs a response is the sum of.
        gain: 1/β, as `torch.nn.init.calculate_gain` or `compute_torch_gain` gives it.

    >>> round(compute_copy_variance(copies=4, fan_in=64, gain=torch.nn.init.calculate_gain("relu")), 12)  # 4 · 2 / 64
    0.125
    """
    require_count("copies", copies, 1, "a layer has weights")
    require_count("fan_in", fan_in, 1, "a response is the sum of inputs")
    _require_positive("gain", gain)
    return copies * gain**2 / fan_in


@torch.no_grad()
def initialize_copies_(weights: Tensor, gain: float) -> Tensor:
    """Draw the weights of m copies of a layer from N(0, m · gain² / fan_in), in place (eq. 10).

    Args:
        weights: `[m, outputs, inputs, …]`: the weights of m linear layers or convolutions.
        gain: 1/β, as `torch.nn.init.calculate_gain` or `compute_torch_gain` gives it.

    Returns:
        `weights`.

    Raises:
        ValueError: `weights` has fewer than three axes.

    >>> weights = initialize_copies_(torch.empty(4, 256, 256), gain=2**0.5)
    >>> round(weights.var().item() * 256), round(weights.mean(0).var().item() * 256)  # 2m, and 2 of their mean
    (8, 2)
    """
    if weights.dim() < 3:
        raise ValueError(f"weights must be [copies, outputs, inputs, …], got {list(weights.shape)}: add the axis of copies")
    return weights.normal_(0, math.sqrt(compute_copy_variance(len(weights), weights[0, 0].numel(), gain)))


def _require_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
