"""Curvature: which random weights could be replaced by their mean.

    κ_ij = σ_ij² · ∂²L/∂W_ij²  at W = μ,     L = − Σ_n log p(y_n | x_n, W)                                  (eq. 15, 16)

Where κ is small, L is almost linear in the weight over the range in which the weight varies, so its noise averages out. κ has a
sign; the paper plots logarithms, so take |κ|. Its eq. 16 is of + log p: the sign here is that of the loss, positive where L is
convex.

For a linear layer in a network that treats every row independently, r_n = W a_n, second derivatives with respect to the
response r are enough:

    ∂²L/∂W_ij² = Σ_n h_ni a_nj²,     h_ni = ∂²L/∂r_ni² = Σ_k p_k (J_ki − Σ_l p_l J_li)² + Σ_k (p − y)_k ∂²f_k/∂r_ni²,

f the logits, J their derivatives. If each logit is a sum of functions of single units (an elementwise activation, then the
classifier V, perhaps with a BatchNorm before or between: f = V φ(s r + b)), then ∂²f/∂r² is diagonal, and one product of the
Hessian with a vector of ones gives all of it: that is the closed form, J_ki = s_i φ'_i V_ki. A product with a random vector
shows whether it is diagonal. If it is not, there is one product for each unit. Convolutions, and layers that run more than once
or at several positions of a row, need one product for each weight, which suits small layers, or Hutchinson's estimate,
E v ⊙ Hv with random signs v.

A ReLU has no second derivative, and no first one at zero: behind a layer without means and biases every κ is 0. The paper
uses softplus.

Neklyudov et al., "Variance Networks" (the earlier version), section 5; Hutchinson, 1990.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.modes import evaluation_mode
from ..core.random_weights import RandomWeights, use_fixed_weights
from ..core.spec import require_count
from ..core.surgery import Patterns, list_ancestors, list_patterns, matches
from .pruning import list_random_layers


def kappa(
    ensemble: Ensemble,
    batches: Iterable[tuple[Any, Tensor]],
    *,
    layers: Patterns = None,
    samples: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Tensor]:
    """Compute κ of every random weight, summed over all rows of the data.

    Every random layer is at its mean and in evaluation mode. In a deep ensemble, L is the loss of the part that holds the
    layer.

    Args:
        ensemble: An ensemble with random weights, for classification.
        batches: Batches (x `[B, …]`, y `[B]`).
        layers: Patterns of the layers to look at; None for all with random weights.
        samples: Where one product for each weight would be needed, the number of Hutchinson's random products for each batch
            instead; None for the exact computation.
        seed: The seed of these random products.
        progress: A function that receives the number of rows that are done.

    Returns:
        κ by the name of the layer, in the shape of its weights.

    Raises:
        ValueError: The task is no classification, there are no rows, or no such layers.

    >>> import pluribus
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Softplus(), torch.nn.Linear(6, 3))
    >>> ensemble = pluribus.ensemble(net, pluribus.Variance())
    >>> {name: k.shape for name, k in kappa(ensemble, [(torch.randn(8, 4), torch.arange(8) % 3)]).items()}
    {'0': torch.Size([6, 4])}
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    every = list_random_layers(ensemble)
    chosen = {name: every[name] for name in select_layers(every, layers)}
    if ensemble.task != "classification":
        raise ValueError(f"κ needs an ensemble for classification, got one for {ensemble.task}")
    if samples is not None:
        require_count("samples", samples, 1, "an estimate needs at least one product")
    generator = torch.Generator().manual_seed(seed)
    second = {name: torch.zeros_like(layer.mu) for name, layer in chosen.items()}
    done = 0
    means = {layer: layer.mu.detach() for layer in every.values()}
    # Only this kernel of attention can be differentiated twice.
    with evaluation_mode(ensemble), use_fixed_weights(means), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        for x, y in batches:
            for name, layer in chosen.items():
                second[name] += LayerPass(find_owner(ensemble, name), layer, x, y, generator).compute_second_derivatives(
                    samples
                )
            done += len(y)
            if progress is not None:
                progress(done)
    if not done:
        raise ValueError("batches must hold at least one row, got none: was it an iterator that had been used up?")
    return {name: layer.variance().detach() * second[name] for name, layer in chosen.items()}


class LayerPass:
    """One batch through the network that holds a layer."""

    def __init__(self, net: Ensemble, layer: RandomWeights, x: Any, y: Tensor, generator: torch.Generator) -> None:
        self.net, self.layer, self.x, self.y, self.generator = net, layer, x, y, generator

    def compute_second_derivatives(self, samples: int | None) -> Tensor:
        """Return ∂²L/∂W_ij² of every weight, in the shape of the weights."""
        inputs, responses, logits = self.split_at_layer()
        if not inputs:
            return torch.zeros_like(self.layer.mu)
        runs_once = len(inputs) == 1 and inputs[0].dim() == 2 and len(inputs[0]) == pytrees.count_rows(self.x)
        if self.layer.affine.linear and runs_once and self.has_independent_rows(responses[0], logits):
            h = self.differentiate_by_class(responses[0], logits)
            h = self.differentiate_by_unit(responses[0], logits) if h is None else h
            return h.mT @ inputs[0].square()
        return self.differentiate_by_weight() if samples is None else self.estimate(samples)

    def split_at_layer(self) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Return inputs and responses of the layer in each of its calls, and the logits as functions of these responses."""
        inputs: list[Tensor] = []
        responses: list[Tensor] = []

        def record(layer: RandomWeights, args: tuple[Tensor], response: Tensor) -> Tensor:
            torch.set_grad_enabled(True)  # only the part after the layer needs a graph
            inputs.append(args[0])
            responses.append(response.detach().requires_grad_())
            return responses[-1]

        hook = self.layer.register_forward_hook(record)
        try:
            with torch.no_grad():
                return inputs, responses, self.compute_logits()
        finally:
            hook.remove()

    def compute_logits(self) -> Tensor:
        """Return logits `[B, C, …]`; a single logit is that of the second of two classes."""
        output = self.net.executor.run_alone(self.net, self.x, 0)
        if output.dim() > 1 and output.shape[1] > 1:
            return output
        output = output.view(len(output), 1)
        return torch.cat([torch.zeros_like(output), output], dim=1)

    def get_targets(self, logits: Tensor) -> Tensor:
        """Return the classes in the shape of the predictions, `[B, …]`."""
        y, shape = self.y, logits[:, 0].shape
        if y.numel() != shape.numel() or y.is_floating_point():
            raise ValueError(
                f"y must hold a class for each of {list(shape)} predictions, got {y.dtype} of shape {list(y.shape)}"
            )
        return y.long().view(shape)

    def compute_loss(self, logits: Tensor) -> Tensor:
        return F.cross_entropy(logits, self.get_targets(logits), reduction="sum")

    def has_independent_rows(self, response: Tensor, logits: Tensor) -> bool:
        """Whether no row's logits depend on the response to another row, tested with a random half of the rows."""
        some = torch.rand(len(logits), generator=self.generator).to(logits.device) < 0.5
        weights = self.draw(torch.randn, logits)
        gradient = differentiate((weights * logits)[some].sum(), response)
        return not gradient[~some].any()

    def differentiate_by_class(self, response: Tensor, logits: Tensor) -> Tensor | None:
        """Return h `[B, O]` by one product for each class; None unless each logit is a sum of functions of single units."""
        if logits.dim() > 2 or logits.shape[1] > response.shape[1]:
            return None
        probs, truth = logits.detach().softmax(1), self.get_targets(logits).unsqueeze(1)
        others = probs.scatter(1, truth, 0)
        error = others.scatter(1, truth, -others.sum(1, keepdim=True))  # p − y, which stays precise where p is almost one
        gradient = differentiate((error * logits).sum(), response, create_graph=True)
        diagonal, vector = differentiate(gradient.sum(), response), self.draw(torch.randn, response)
        crossed = differentiate((gradient * vector).sum(), response)
        if (crossed - diagonal * vector).abs().max() > torch.finfo(crossed.dtype).eps ** 0.5 * crossed.abs().max():
            return None
        before, mean, spread = torch.zeros_like(probs[:, :1]), torch.zeros_like(response), torch.zeros_like(response)
        for k, p in enumerate(probs.split(1, dim=1)):  # the variance of J over classes by Welford's recursion
            step = differentiate(logits[:, k].sum(), response) - mean
            weight = (before + p).clamp_min(torch.finfo(p.dtype).tiny)
            mean = mean + step * (p / weight)
            spread = spread + step.square() * (p * before / weight)
            before = weight
        return spread + diagonal

    def differentiate_by_unit(self, response: Tensor, logits: Tensor) -> Tensor:
        """Return h `[B, O]` by one product for each unit, for all rows at once."""
        gradient = differentiate(self.compute_loss(logits), response, create_graph=True)
        units = [differentiate(gradient[:, i].sum(), response)[:, i] for i in range(gradient.shape[1])]
        return torch.stack(units, dim=1)

    def differentiate_by_weight(self) -> Tensor:
        """Return the second derivatives by one product for each weight."""
        weight, gradient = self.compute_gradient()
        second = [differentiate(each, weight).flatten()[i] for i, each in enumerate(gradient.flatten())]
        return torch.stack(second).view_as(weight)

    def estimate(self, samples: int) -> Tensor:
        """Estimate the second derivatives by Hutchinson's random products."""
        weight, gradient = self.compute_gradient()
        total = torch.zeros_like(gradient)
        for _ in range(samples):
            signs = 2 * self.draw(torch.rand, weight).round() - 1
            total += signs * differentiate((gradient * signs).sum(), weight)
        return total.detach() / samples

    def compute_gradient(self) -> tuple[Tensor, Tensor]:
        """Return the weights at their mean, and ∂L/∂W as a function of them."""
        weight = self.layer.mu.detach().clone().requires_grad_()
        with torch.enable_grad(), use_fixed_weights({self.layer: weight}):
            return weight, differentiate(self.compute_loss(self.compute_logits()), weight, create_graph=True)

    def draw(self, sample: Callable[..., Tensor], like: Tensor) -> Tensor:
        return sample(like.shape, generator=self.generator, dtype=like.dtype).to(like.device)


def differentiate(value: Tensor, at: Tensor, create_graph: bool = False) -> Tensor:
    """Return the gradient of a value; zero where the value does not depend on `at`."""
    if not value.requires_grad:
        return torch.zeros_like(at)
    return torch.autograd.grad(value, at, retain_graph=True, create_graph=create_graph, materialize_grads=True)[0]


def select_layers(layers: dict[str, RandomWeights], patterns: Patterns) -> list[str]:
    """Return the names of the layers that match, in their order; raises ValueError where a pattern matches none."""
    if patterns is None:
        return list(layers)
    found: set[str] = set()
    for pattern in list_patterns(patterns):
        hits = {name for name, layer in layers.items() if matches(pattern, name, layer)}
        if not hits:
            raise ValueError(f"layers={pattern!r} names no layer with random weights: there are {', '.join(map(repr, layers))}")
        found |= hits
    return [name for name in layers if name in found]


def find_owner(ensemble: Ensemble, name: str) -> Ensemble:
    """Return the innermost ensemble around a layer."""
    around = (ensemble.net.get_submodule(block) for block in list_ancestors(name))
    return next((part for part in around if isinstance(part, Ensemble)), ensemble)
