"""The distribution of a neuron's response in a random layer, averaged over the rows of each class.

    p_c(b) = (1/N_c) Σ_{n: y_n = c} N(b | m_n, s_n²)

m_n and s_n are the mean and the standard deviation of the neuron's response to row n. A variance layer has m_n = 0 (or its
bias), so the densities of its classes differ in width only.

Neklyudov et al., "Variance Networks", ICLR 2019, figure 9.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...core.ensemble import Ensemble
from ...core.modes import evaluation_mode
from ...core.random_weights import find_random_layers


@dataclass(frozen=True, eq=False)
class Response:
    """Mean and standard deviation of every neuron's response to each row, both `[B, neurons]`."""

    mean: Tensor
    std: Tensor

    def density(self, at: Tensor, neuron: int) -> Tensor:
        """Return the density of each row's response at the points `at`, `[P]`: `[B, P]`."""
        mean, std = self.mean[:, neuron, None].double(), self.std[:, neuron, None].double()
        return (-0.5 * ((at - mean) / std).square()).exp() / (std * math.sqrt(2 * math.pi))


@torch.no_grad()
def measure_response(ensemble: Ensemble, x: Tensor, layer: str, batch_size: int = 1000) -> Response:
    """Return mean and standard deviation of a random linear layer's response to rows.

    Args:
        ensemble: it is evaluated; if layers before this one are random, the response is to one draw of them.
        x: B rows, `[B, …]`.
        layer: the name of the layer in `ensemble.net`.
        batch_size: rows that are computed at once.

    Raises:
        ValueError: if the layer is not a linear layer with random weights.
    """
    layers = find_random_layers(ensemble.net)
    if layer not in layers:
        raise ValueError(f"layer must be one with random weights ({', '.join(layers) or 'there is none'}), got {layer!r}")
    module = layers[layer]
    seen: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, args: seen.append(args[0].detach()))
    means, stds = [], []
    try:
        with evaluation_mode(ensemble):
            ensemble.executor.prepare(ensemble, x)
            for start in range(0, len(x), batch_size):
                rows = x[start : start + batch_size]
                seen.clear()
                ensemble(rows)
                entering = seen[-1][: len(rows)]  # if the members have separate inputs here, the first member's
                if entering.dim() != 2:
                    raise ValueError(f"{layer} must be a linear layer of rows, got inputs of shape {list(entering.shape)}")
                stds.append(module.compute_std(entering))
                means.append(module.affine(entering, module.mu, module.offset))
    finally:
        hook.remove()
    return Response(torch.cat(means), torch.cat(stds))


def average_by_class(found: Response, y: Tensor, at: Tensor, neuron: int) -> dict[int, tuple[Tensor, Tensor]]:
    """Return for each class the mean and the standard deviation over its rows of the density of a neuron's response.

    Args:
        found: the responses to B rows.
        y: their classes, `[B]`.
        at: P points, `[P]`.
        neuron: the index of the neuron.
    """
    densities = found.density(at.double(), neuron)
    classes = {int(label): densities[y == label] for label in y.unique()}
    return {label: (each.mean(0), each.std(0, unbiased=False)) for label, each in classes.items()}
