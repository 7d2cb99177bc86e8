"""Curvature: which random weights could as well be their mean.

    κ_ij = σ_ij² · ∂²L/∂W_ij²  at W = μ,     L = − Σ_n log p(y_n | x_n, W)                                  (eq. 15, 16)

Where κ is small, L is almost linear in the weight as far as it varies, and its noise averages out. κ has a sign; the paper
plots logarithms, so take |κ|. Its eq. 16 is of + log p: the sign here is that of the loss, positive where L is convex.

A linear layer whose rows go their own ways, r_n = W a_n, needs only the second derivatives with respect to its response:

    ∂²L/∂W_ij² = Σ_n h_ni a_nj²,     h_ni = ∂²L/∂r_ni² = Σ_k p_k (J_ki − Σ_l p_l J_li)² + Σ_k (p − y)_k ∂²f_k/∂r_ni²,

f the logits, J their derivatives. If each logit is a sum of functions of single units (an elementwise activation, then the
classifier V, perhaps with a BatchNorm before or between: f = V φ(s r + b)), then ∂²f/∂r² is diagonal, and one product with
a vector of ones gives all of it: that is the closed form, J_ki = s_i φ'_i V_ki. A random vector tells whether it is
diagonal. Else there is a product for each unit; for convolutions, for layers that run more than once or at several positions
of a row, one for each weight, which is for small layers, or Hutchinson's estimate, E v ⊙ Hv with random signs v.

A ReLU has no second derivative, and no first one at zero: behind a layer without means and biases every κ is 0. The paper
uses softplus.

Neklyudov et al., "Variance Networks" (the earlier version), section 5; Hutchinson, 1990.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import nested
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
    """κ of every random weight, by layer, over the data that `batches` of (x, y) run through.

    Every random layer is at its mean, and in evaluation mode. `layers` chooses some. Where there would be a product for each
    weight, `samples` takes that many of Hutchinson's a batch instead: unbiased, drawn from `seed`. In a deep ensemble L is the
    loss of the part that holds the layer. `progress` is told how many rows are done.

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
        raise ValueError(f"κ is of the log-likelihood of classes, got a {ensemble.task}")
    if samples is not None:
        require_count("samples", samples, 1, "an estimate needs a product")
    generator = torch.Generator().manual_seed(seed)
    second = {name: torch.zeros_like(layer.mu) for name, layer in chosen.items()}
    done = 0
    means = {layer: layer.mu.detach() for layer in every.values()}
    # The other kernels of attention cannot be differentiated twice.
    with evaluation_mode(ensemble), use_fixed_weights(means), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        for x, y in batches:
            for name, layer in chosen.items():
                second[name] += Pass(find_owner(ensemble, name), layer, x, y, generator).second(samples)
            done += len(y)
            if progress is not None:
                progress(done)
    if not done:
        raise ValueError("batches must hold at least one row, got none: was it an iterator that had been used up?")
    return {name: layer.variance().detach() * second[name] for name, layer in chosen.items()}


class Pass:
    """One batch through the network that a layer is in."""

    def __init__(self, net: Ensemble, layer: RandomWeights, x: Any, y: Tensor, generator: torch.Generator) -> None:
        self.net, self.layer, self.x, self.y, self.generator = net, layer, x, y, generator

    def second(self, samples: int | None) -> Tensor:
        """∂²L/∂W² of every weight, without what mixes two of them."""
        entered, answered, logits = self.cut()
        if not entered:
            return torch.zeros_like(self.layer.mu)
        alone = len(entered) == 1 and entered[0].dim() == 2 and len(entered[0]) == nested.count_rows(self.x)
        if self.layer.affine.linear and alone and self.own_ways(answered[0], logits):
            h = self.by_classes(answered[0], logits)
            h = self.by_units(answered[0], logits) if h is None else h
            return h.mT @ entered[0].square()
        return self.by_weights() if samples is None else self.estimated(samples)

    def cut(self) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """What enters the layer and what it answers, in each of its calls, and the logits as functions of these answers."""
        entered: list[Tensor] = []
        answered: list[Tensor] = []

        def listen(layer: RandomWeights, args: tuple[Tensor], answer: Tensor) -> Tensor:
            torch.set_grad_enabled(True)  # from here on: what is before needs no graph
            entered.append(args[0])
            answered.append(answer.detach().requires_grad_())
            return answered[-1]

        hook = self.layer.register_forward_hook(listen)
        try:
            with torch.no_grad():
                return entered, answered, self.logits()
        finally:
            hook.remove()

    def logits(self) -> Tensor:
        """`[B, C, …]`; a single logit is that of the second of two classes."""
        output = self.net.alone(self.x, 0)
        if output.dim() > 1 and output.shape[1] > 1:
            return output
        output = output.view(len(output), 1)
        return torch.cat([torch.zeros_like(output), output], dim=1)

    def truth(self, logits: Tensor) -> Tensor:
        """The classes, `[B, …]`."""
        y, shape = self.y, logits[:, 0].shape
        if y.numel() != shape.numel() or y.is_floating_point():
            raise ValueError(f"y must hold a class for each of {list(shape)} answers, got {y.dtype} of shape {list(y.shape)}")
        return y.long().view(shape)

    def loss(self, logits: Tensor) -> Tensor:
        return F.cross_entropy(logits, self.truth(logits), reduction="sum")

    def own_ways(self, response: Tensor, logits: Tensor) -> bool:
        """Whether no row's logits depend on the response to another row: those of random rows do not on that to the rest."""
        some = torch.rand(len(logits), generator=self.generator).to(logits.device) < 0.5
        weights = self.drawn(torch.randn, logits)
        slope = differentiate((weights * logits)[some].sum(), response)
        return not slope[~some].any()

    def by_classes(self, response: Tensor, logits: Tensor) -> Tensor | None:
        """h `[B, O]` by a product for each class, if each logit is a sum of functions of single units; else None."""
        if logits.dim() > 2 or logits.shape[1] > response.shape[1]:
            return None
        probs, truth = logits.detach().softmax(1), self.truth(logits).unsqueeze(1)
        others = probs.scatter(1, truth, 0)
        error = others.scatter(1, truth, -others.sum(1, keepdim=True))  # p − y, precise where p is almost one
        slope = differentiate((error * logits).sum(), response, create_graph=True)
        bend, vector = differentiate(slope.sum(), response), self.drawn(torch.randn, response)
        crossed = differentiate((slope * vector).sum(), response)
        if (crossed - bend * vector).abs().max() > torch.finfo(crossed.dtype).eps ** 0.5 * crossed.abs().max():
            return None
        before, mean, spread = torch.zeros_like(probs[:, :1]), torch.zeros_like(response), torch.zeros_like(response)
        for k, p in enumerate(probs.split(1, dim=1)):  # the variance of J over classes, without differences of large numbers
            step = differentiate(logits[:, k].sum(), response) - mean
            weight = (before + p).clamp_min(torch.finfo(p.dtype).tiny)
            mean = mean + step * (p / weight)
            spread = spread + step.square() * (p * before / weight)
            before = weight
        return spread + bend

    def by_units(self, response: Tensor, logits: Tensor) -> Tensor:
        """h `[B, O]` by a product for each unit, of all rows at once."""
        slope = differentiate(self.loss(logits), response, create_graph=True)
        units = [differentiate(slope[:, i].sum(), response)[:, i] for i in range(slope.shape[1])]
        return torch.stack(units, dim=1)

    def by_weights(self) -> Tensor:
        """By a product for each weight."""
        weight, slope = self.slope()
        second = [differentiate(each, weight).flatten()[i] for i, each in enumerate(slope.flatten())]
        return torch.stack(second).view_as(weight)

    def estimated(self, samples: int) -> Tensor:
        weight, slope = self.slope()
        total = torch.zeros_like(slope)
        for _ in range(samples):
            signs = 2 * self.drawn(torch.rand, weight).round() - 1
            total += signs * differentiate((slope * signs).sum(), weight)
        return total.detach() / samples

    def slope(self) -> tuple[Tensor, Tensor]:
        """The weights at their mean, and ∂L/∂W as a function of them."""
        weight = self.layer.mu.detach().clone().requires_grad_()
        with torch.enable_grad(), use_fixed_weights({self.layer: weight}):
            return weight, differentiate(self.loss(self.logits()), weight, create_graph=True)

    def drawn(self, sample: Callable[..., Tensor], like: Tensor) -> Tensor:
        return sample(like.shape, generator=self.generator, dtype=like.dtype).to(like.device)


def differentiate(value: Tensor, at: Tensor, create_graph: bool = False) -> Tensor:
    """Zero where the value does not depend on it."""
    if not value.requires_grad:
        return torch.zeros_like(at)
    return torch.autograd.grad(value, at, retain_graph=True, create_graph=create_graph, materialize_grads=True)[0]


def select_layers(layers: dict[str, RandomWeights], patterns: Patterns) -> list[str]:
    """The layers that are meant, in their order."""
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
    """The innermost ensemble around a layer."""
    around = (ensemble.net.get_submodule(block) for block in list_ancestors(name))
    return next((part for part in around if isinstance(part, Ensemble)), ensemble)
