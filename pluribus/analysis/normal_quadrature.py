"""Expectations under a normal distribution, and under the largest of several, by quadrature in double precision.

    E f(z) = ∫ f(z) φ(z) dz,                      z ~ N(0, 1)
    E f(max_i z_i) = ∫ f(z) m φ(z) Φ(z)^(m−1) dz,   z_1 … z_m independent

Gauss-Legendre quadrature on panels that become narrower towards zero: a kink at zero, as ReLU has, is the end of two panels,
and an activation that is steep at zero is seen at its own scale.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ..core.spec import require_count

END = 13.0
"""The density beyond is less than 1e-37."""
NODES = 32
"""In each panel."""


@cache
def list_nodes() -> tuple[Tensor, Tensor]:
    """The nodes, and their weights without any density."""
    positive = [0.0, *(2.0**-power for power in range(12, 0, -1)), *map(float, range(1, int(END) + 1))]
    edges = np.array([*(-edge for edge in reversed(positive[1:])), *positive])
    at, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges)[:, None] / 2
    middle = (edges[:-1] + edges[1:])[:, None] / 2
    return torch.from_numpy((middle + half * at).ravel()), torch.from_numpy((half * weights).ravel())


@cache
def weigh_nodes(count: int) -> Tensor:
    """The weights of the nodes times the density of the largest of `count` standard normal numbers."""
    nodes, weights = list_nodes()
    log_density = -nodes.square() / 2 - math.log(math.sqrt(2 * math.pi)) + math.log(count)
    return weights * (log_density + (count - 1) * torch.special.log_ndtr(nodes)).exp()


def integrate_normal(f: Callable[[Tensor], Tensor], count: int = 1) -> float:
    """Return E f(z) of a standard normal number z, or of the largest of several.

    Args:
        f: A function of a tensor, element by element, in double precision. It may have a kink at zero.
        count: How many independent normal numbers z is the largest of.

    >>> round(integrate_normal(torch.square), 12), round(integrate_normal(torch.relu), 6)  # 1 and 1/√(2π)
    (1.0, 0.398942)
    """
    require_count("count", count, 1, "the largest of none is no number")
    return (weigh_nodes(count) * f(list_nodes()[0])).sum().item()


def compute_maximum_moments(count: int) -> tuple[float, float]:
    """Return the mean and the variance of the largest of `count` independent standard normal numbers.

    >>> [round(compute_maximum_moments(count)[1], 3) for count in (1, 2, 4, 8)]
    [1.0, 0.682, 0.492, 0.373]
    """
    mean = integrate_normal(lambda z: z, count)
    return mean, integrate_normal(lambda z: (z - mean).square(), count)
