"""What a random layer responds with: the distribution of a neuron's response, averaged over the rows of each class.

    p_c(b) = (1/N_c) Σ_{n: y_n = c} N(b | m_n, s_n²)

m_n and s_n are the mean and the standard deviation of the neuron's response to row n. A variance layer has m_n = 0 (or its
bias): classes differ in the width alone.

Neklyudov et al., "Variance Networks", ICLR 2019, figure 9.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.modes import evaluation_mode
from ..core.random_weights import find_random_layers


@dataclass(frozen=True, eq=False)
class Response:
    """Mean and standard deviation of every neuron's response to each row, both `[B, neurons]`."""

    mean: Tensor
    std: Tensor

    def density(self, at: Tensor, neuron: int) -> Tensor:
        """The density of each row's response at some points: `[B, len(at)]`."""
        mean, std = self.mean[:, neuron, None].double(), self.std[:, neuron, None].double()
        return (-0.5 * ((at - mean) / std).square()).exp() / (std * math.sqrt(2 * math.pi))


@torch.no_grad()
def response(ensemble: Ensemble, x: Tensor, layer: str, batch_size: int = 1000) -> Response:
    """How a random linear layer of the ensemble responds to x, by its name in `ensemble.net`.

    Rows before the layer are answered as in evaluation; with noise in layers before it, the response is to one draw of that.
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
                entering = seen[-1][: len(rows)]  # the first member's, where they have parted already
                if entering.dim() != 2:
                    raise ValueError(f"{layer} must be a linear layer of rows, got inputs of shape {list(entering.shape)}")
                stds.append(module.compute_std(entering))
                means.append(module.affine(entering, module.mu, module.offset))
    finally:
        hook.remove()
    return Response(torch.cat(means), torch.cat(stds))


def by_class(found: Response, y: Tensor, at: Tensor, neuron: int) -> dict[int, tuple[Tensor, Tensor]]:
    """The density of a neuron's response, its mean over the rows of a class and its standard deviation over them."""
    densities = found.density(at.double(), neuron)
    classes = {int(label): densities[y == label] for label in y.unique()}
    return {label: (each.mean(0), each.std(0, unbiased=False)) for label, each in classes.items()}
