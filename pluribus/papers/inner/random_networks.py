"""Networks with drawn weights, as figure 2 is about: an activation and a layer in turn, converted by the methods of pluribus.

Every copy of a layer has weights of the same variance as the layer of an ordinary network, gain²/n, as the paper's theory has
it. "eq. 10" alone draws them with m times that variance, as the paper starts its inner ensembles and as `Inner` does.
"""

import math
from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

import pluribus

from ...analysis.activation_gains import initialize_copies_
from ...analysis.variance_responses import LayerResponse
from ...methods.inner import Averaged, Inner
from ...methods.maxout import Maxout

Method = Literal["ordinary", "inner", "eq. 10", "maxout", "dropout", "inverted dropout"]


class Multiplication(nn.Module):
    """Multiplies by a number."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


def describe_response(method: Method, size: float) -> LayerResponse:
    """How a layer of the method answers; `size` is m, or the probability of keeping a unit."""
    if method == "maxout":
        return LayerResponse(copies=int(size), reduction="max")
    if method == "inner":
        return LayerResponse(copies=int(size))
    if method in ("dropout", "inverted dropout"):
        return LayerResponse(keep=size, inverted=method == "inverted dropout")
    return LayerResponse()  # eq. 10 cancels 1/m


def get_activation(layers: int) -> str:
    """One layer is linear, as in the paper's figure; deeper networks have ReLU."""
    return "identity" if layers == 1 else "relu"


def build_network(method: Method, size: float, width: int, layers: int) -> Callable[[Tensor], Tensor]:
    """Return a network `[B, width]` → `[…, B, width]` with new weights, whose ordinary form keeps the variance at 1.

    >>> import torch
    >>> build_network("maxout", 4, width=8, layers=2)(torch.randn(5, 8)).shape
    torch.Size([1, 5, 8])
    """
    name: Literal["linear", "relu"] = "linear" if get_activation(layers) == "identity" else "relu"
    gain = nn.init.calculate_gain(name)
    parts: list[nn.Module] = []
    for _ in range(layers):
        layer = nn.Linear(width, width, bias=False)
        nn.init.normal_(layer.weight, 0, gain / math.sqrt(width))
        parts += [nn.ReLU() if name == "relu" else nn.Identity(), layer]
        if method in ("dropout", "inverted dropout"):
            parts.append(nn.Dropout(1 - size))
        if method == "dropout":
            parts.append(Multiplication(size))  # PyTorch divides what is kept by this
    network = nn.Sequential(*parts).train()
    if method == "maxout":
        return pluribus.ensemble(network, Maxout(copies=int(size)))
    if method == "eq. 10":
        return pluribus.ensemble(network, Inner(copies=int(size), init="paper", nonlinearity=name))
    if method == "inner":
        ensemble = pluribus.ensemble(network, Inner(copies=int(size)))
        for module in ensemble.modules():
            if isinstance(module, Averaged):
                initialize_copies_(module.weights, gain / math.sqrt(size))
        return ensemble
    return network
