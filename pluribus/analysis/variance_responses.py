"""Variance responses: how large the responses of a random network are, with inner ensembles, dropout or maxout.

    x_l = f(y_{l−1}),   y_l = w_l x_l,   l = 2 … L;    w of independent, symmetric elements

An ordinary layer answers with Var[y_l] = n Var[w] E[x_l²], n = fan_in. The *variance gain* of a method is the variance of its
last response divided by that of the ordinary network with the same Var[w]. Of one layer, L − 1 = 1, and of `layers` = L − 1:

    method                  printed in the paper                exact
    mean of m copies        1/m, 1/m^(L−1) (eqs. 1, 8, 19)      the same
    Bernoulli mask δ, p     at most ½, ½^(L−1) (eqs. 13, 14)    p^(L−1): ½ is the value at p = ½, and no bound
    δ/p, inverted dropout   –                                   (1/p)^(L−1): what PyTorch's dropout does, the variance grows
    maximum of m copies     at most m, m^(L−1) (eqs. 16, 17)    v_m · M_m^(L−2)
                            at least c / ln m (eq. 18)          v_m, one layer
                            about π² / (12 ln m) (eqs. 20, 21)  v_m, one layer

with v_m = Var and M_m = E[max²] of the largest of m standard normal numbers: v is 0.682, 0.492, 0.373 and M is 1, 1.55, 2.40 at
m = 2, 4, 8. The formulas of the column "exact" with powers are for the identity; the functions take any activation.

A maximum has a mean. The variance here is that over the weights of the last layer, given its input, averaged over
all inputs and other layers. For responses of mean zero, which all but maxout have, this is the whole variance; the mean of a
maximum varies in addition with the length of the input, by a part that vanishes as layers become wide.

For normal weights and a positively homogeneous f (identity, ReLU, leaky ReLU) the values are exact at every width; for
other activations they are those of infinitely wide layers.

This is a variance over initialisations. It says nothing about generalisation, and eq. 10 (`activation_gains`) cancels it.

Mohamed et al., "Inner Ensemble Networks: Average Ensemble as an Effective Regularizer", 2020, section 3, appendices A to E.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..core.spec import require_choice, require_count, require_share
from .activation_gains import Activation, find_activation
from .normal_quadrature import compute_maximum_moments, integrate_normal


@dataclass(frozen=True)
class PrintedGains:
    """The variance gains as the paper prints them; None where it has none."""

    inner: float
    """1/m^(L−1), eqs. 1 and 19."""
    dropout: float
    """½^(L−1), eq. 14, which the paper calls an upper bound."""
    maxout_upper: float
    """m^(L−1), eq. 17."""
    maxout_lower: float | None
    """c / ln m, eq. 18, for one layer."""
    maxout_asymptote: float | None
    """π² / (12 ln m), eqs. 20 and 21, for one layer and large m."""


def list_printed_gains(copies: int, layers: int = 1, c: float = 0.3) -> PrintedGains:
    """Return the variance gains that the paper prints.

    Args:
        copies: m, at least 2.
        layers: L − 1, the number of layers after the first response.
        c: The constant of eq. 18, which the paper leaves open. Up to 0.4725 the bound holds for all m.

    >>> found = list_printed_gains(copies=4)
    >>> found.inner, found.dropout, found.maxout_upper, round(found.maxout_lower, 3), round(found.maxout_asymptote, 3)
    (0.25, 0.5, 4.0, 0.216, 0.593)
    """
    require_count("copies", copies, 2, "the bounds are about several copies")
    require_count("layers", layers, 1, "a response needs a layer")
    return PrintedGains(
        inner=copies**-layers,
        dropout=0.5**layers,
        maxout_upper=float(copies**layers),
        maxout_lower=c / math.log(copies) if layers == 1 else None,
        maxout_asymptote=math.pi**2 / (12 * math.log(copies)) if layers == 1 else None,
    )


@dataclass(frozen=True)
class LayerResponse:
    """How a layer answers: m copies, their mean or maximum, and a Bernoulli mask on it.

    - `LayerResponse()` is an ordinary layer
    - `LayerResponse(copies=4)` an inner ensemble
    - `LayerResponse(copies=4, reduction="max")` maxout
    - `LayerResponse(keep=0.5)` dropout as the paper has it
    - `LayerResponse(keep=0.5, inverted=True)` dropout as PyTorch has it

    >>> LayerResponse(copies=4).variance, LayerResponse(keep=0.5).variance, LayerResponse(keep=0.5, inverted=True).variance
    (0.25, 0.5, 2.0)
    """

    copies: int = 1
    reduction: Literal["mean", "max"] = "mean"
    keep: float = 1.0
    """The probability p that a response is kept."""
    inverted: bool = False
    """Whether a response that is kept is divided by p."""

    def __post_init__(self) -> None:
        require_count("copies", self.copies, 1, "a layer has weights")
        require_choice("reduction", self.reduction, ("mean", "max"))
        require_share("keep", self.keep)
        if self.keep == 0:
            raise ValueError("keep must be positive, got 0: nothing would be left of the responses")

    @property
    def mask(self) -> float:
        """What a response is multiplied by where it is kept."""
        return 1 / self.keep if self.inverted else 1.0

    @property
    def variance(self) -> float:
        """The variance gain of one layer."""
        mean, variance = compute_maximum_moments(self.copies) if self.reduction == "max" else (0.0, 1 / self.copies)
        return self.mask**2 * self.keep * (variance + (1 - self.keep) * mean**2)

    def compute_square(self, activation: Activation, scale: float) -> float:
        """Return E[f(y)²] of the responses y, if those of a copy alone are normal with the standard deviation `scale`."""
        count = self.copies if self.reduction == "max" else 1
        size = self.mask * scale * (1 if self.reduction == "max" else self.copies**-0.5)
        kept = integrate_normal(lambda z: activation(size * z).square(), count)
        dropped = activation(torch.zeros((), dtype=torch.double)).item() ** 2
        return self.keep * kept + (1 - self.keep) * dropped


ORDINARY = LayerResponse()


def trace_variances(
    response: LayerResponse,
    layers: int = 1,
    activation: str | Activation = "identity",
    scale: float = 1.0,
    start: float = 1.0,
) -> list[float]:
    """Return the variances of the responses y_1 … y_L, in double precision.

    Args:
        response: How each layer answers.
        layers: L − 1, the number of layers after the first response.
        activation: f, a name of `activation_gains.ACTIVATIONS` or a function of a tensor.
        scale: n · Var[w] of every layer; 1/β² keeps the size of an ordinary network's responses.
        start: The variance of y_1, which is normal with mean zero.

    Returns:
        L numbers; the first is `start`.

    >>> [round(each, 12) for each in trace_variances(LayerResponse(copies=2), layers=3, activation="relu", scale=2.0)]
    [1.0, 0.5, 0.25, 0.125]
    """
    require_count("layers", layers, 1, "a response needs a layer")
    f = find_activation(activation)
    square = ORDINARY.compute_square(f, math.sqrt(start))
    found = [start]
    for _ in range(layers):
        found.append(scale * square * response.variance)
        square = response.compute_square(f, math.sqrt(scale * square))
    return found


def compute_variance_gain(
    response: LayerResponse,
    layers: int = 1,
    activation: str | Activation = "identity",
    scale: float = 1.0,
    start: float = 1.0,
) -> float:
    """Return the variance of the last response divided by that of the ordinary network. Arguments: see `trace_variances`.

    >>> round(compute_variance_gain(LayerResponse(copies=4), layers=3), 12)  # 1/4³
    0.015625
    >>> round(compute_variance_gain(LayerResponse(copies=4, reduction="max"), layers=3), 4)  # 0.4917 · 1.5513²
    1.1834
    """
    traced = [trace_variances(each, layers, activation, scale, start)[-1] for each in (response, ORDINARY)]
    return traced[0] / traced[1]


class RandomLayer(nn.Module):
    """n → n: an activation, then m copies of a layer with normal weights of variance scale/n, each computed for itself."""

    def __init__(self, response: LayerResponse, width: int, activation: Activation, scale: float) -> None:
        super().__init__()
        self.response, self.activation = response, activation
        self.weights = nn.Parameter(torch.randn(response.copies, width, width) * math.sqrt(scale / width))

    def forward(self, y: Tensor) -> Tensor:
        """`[B, n]` → `[B, n]`."""
        each = self.activation(y) @ self.weights.mT
        y = each.mean(0) if self.response.reduction == "mean" else each.amax(0)
        if self.response.keep < 1:
            y = y * torch.empty_like(y).bernoulli_(self.response.keep) * self.response.mask
        return y


def build_random_network(
    response: LayerResponse, width: int, layers: int = 1, activation: str | Activation = "identity", scale: float = 1.0
) -> nn.Sequential:
    """Return a network `[B, width]` → `[B, width]` of the kind that `trace_variances` is about, with newly drawn weights.

    >>> build_random_network(LayerResponse(copies=3, reduction="max"), width=8, layers=2)(torch.randn(5, 8)).shape
    torch.Size([5, 8])
    """
    f = find_activation(activation)
    return nn.Sequential(*(RandomLayer(response, width, f, scale) for _ in range(layers)))


@dataclass(frozen=True)
class SampledVariance:
    """The mean over random networks of the variance of their responses, and its standard error."""

    value: float
    error: float


@torch.no_grad()
def sample_response_variance(
    build: Callable[[], Callable[[Tensor], Tensor]], width: int, *, networks: int = 200, rows: int = 8, seed: int = 0
) -> SampledVariance:
    """Draw networks, and measure the variance over the units of their responses to standard normal inputs.

    Given the input of the last layer, its units are independent and alike, so that their sample variance has no bias.

    Args:
        build: Returns a network with new weights: `[rows, width]` → `[…, rows, units]`. An ensemble may be one.
        width: The number of inputs.
        networks: How many are drawn, at least 2.
        rows: How many inputs each network sees.
        seed: The seed of weights, inputs and masks. The state of torch's generator is left as it was.

    >>> found = sample_response_variance(lambda: build_random_network(LayerResponse(copies=4), 64), 64)
    >>> abs(found.value - 0.25) < 4 * found.error
    True
    """
    require_count("networks", networks, 2, "a standard error needs two")
    require_count("rows", rows, 1, "a response needs an input")
    seen = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _ in range(networks):
            responses = build()(torch.randn(rows, width))
            seen.append(responses.double().var(-1).mean())
    values = torch.stack(seen)
    return SampledVariance(values.mean().item(), (values.std() / math.sqrt(networks)).item())
