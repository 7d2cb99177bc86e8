"""Muon: convolutions move along orthogonal matrices, everything else by SGD.

The weight of a convolution is a matrix W `[out, in · kernel]`, G its gradient:

    B ← μ B + G,     U = orthogonal factor of (G + μ B),     W ← W − η ‖W‖ U / ‖U‖,     W ← W ‖W₀‖ / ‖W‖

U has the singular vectors of G + μ B and singular values near one, so that a step uses all directions of the gradient alike,
and not mainly the few that dominate it. Five steps of a Newton–Schulz iteration compute it, by products of matrices alone.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024. Departures: a step is a share η of the norm of
W, whatever its scale is; and W keeps the norm it began with, in place of weight decay, which suits convolutions that BatchNorm
follows. torch.optim.Muon takes matrices alone: no convolutions, no biases beside them, no members side by side.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..core.errors import Unsupported
from ..core.members import Converted
from ..core.templates import TemplateLayer

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of a polynomial that takes all singular values from about 0.003 to 1 to about 0.7 to 1.2 in five steps: Jordan et al."""
ITERATIONS = 5
MOMENTUM = 0.6
"""μ of convolutions, as in the authors' training on CIFAR-10. In trials with ordinary flips, 8.5 epochs and one seed each, 0.8
for these and for everything else (rate 0.1) gave a calibrated NLL of 0.434 on 5,000 validation rows, and 0.6 for these with
0.9 for everything else (rates 0.09 and 0.1) gave 0.410. The two differ in more than this number."""
TINY = 1e-7


class Muon(Optimizer):
    """Muon for the groups that have `leading`, SGD with Nesterov's momentum for the others.

    Args:
        groups: parameters; `leading` is the number of axes that stand before those of a layer's weight, `[…, out, in, …]`.
        lr: η of Muon, and the learning rate of SGD.
        momentum, weight_decay: of SGD alone.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, momentum: float = 0.9, weight_decay: float = 0.0) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "leading": None})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take a step, after computing the loss again if a closure does so."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self.move(weight, group)
        return loss

    def move(self, weight: Tensor, group: dict[str, Any]) -> None:
        """Update one parameter."""
        state, leading = self.state[weight], group["leading"]
        momentum = group["momentum"] if leading is None else MOMENTUM
        gradient = weight.grad
        assert gradient is not None
        if leading is None and group["weight_decay"]:
            gradient = gradient.add(weight, alpha=group["weight_decay"])
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(weight)
            if leading is not None:
                state["norm"] = measure_norms(weight, leading)
        buffer = state["momentum_buffer"].mul_(momentum).add_(gradient)
        direction = gradient.add(buffer, alpha=momentum)
        if leading is None:
            weight.add_(direction, alpha=-group["lr"])
            return
        norm = state["norm"]
        weight.sub_(group["lr"] * norm * normalize(orthogonalize(direction, leading), leading))
        weight.mul_(norm / measure_norms(weight, leading).clamp_min(TINY))


def orthogonalize(weight: Tensor, leading: int = 0) -> Tensor:
    """The orthogonal factor of each matrix, nearly: `[…, out, in, …]` → the same shape.

    >>> found = orthogonalize(torch.tensor([[3.0, 0.0], [0.0, 0.1]]))
    >>> bool(((found.diag() > 0.6) & (found.diag() < 1.3)).all()), found[0, 1].item()
    (True, 0.0)
    """
    matrices = weight.flatten(leading + 1)  # […, out, rest]
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    found = matrices.mT if is_tall else matrices
    found = found / torch.linalg.vector_norm(found, dim=(-2, -1), keepdim=True).clamp_min(TINY)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = found @ found.mT
        found = first * found + (third * square + fifth * square @ square) @ found
    return (found.mT if is_tall else found).reshape(weight.shape)


def measure_norms(weight: Tensor, leading: int) -> Tensor:
    """The norm of each matrix, with axes of one in place of its own: `[…, out, in, …]` → `[…, 1, 1, …]`."""
    return torch.linalg.vector_norm(weight, dim=tuple(range(leading, weight.dim())), keepdim=True)


def normalize(weight: Tensor, leading: int) -> Tensor:
    """Matrices at norm one; a matrix of zeros stays as it is."""
    return weight / measure_norms(weight, leading).clamp_min(TINY)


def separate_convolutions(net: nn.Module, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the weights of convolutions groups of their own, with `leading`.

    Args: the module that the parameters of the groups belong to; the groups. Raises: Unsupported if it has no convolution.
    Convolutions whose weights are mixed from templates have none of their own, and are trained by SGD.
    """
    found: dict[int, int] = {}
    mixed = False
    for module in net.modules():
        mixed |= isinstance(module, TemplateLayer) and isinstance(module.affine.template, CONVOLUTIONS)
        named = {"weight": 0} if isinstance(module, CONVOLUTIONS) else {}
        for name, leading in (module.matrices if isinstance(module, Converted) else named).items():
            weight = getattr(module, name)
            if weight.dim() - leading > 2 and weight.requires_grad:
                found[id(weight)] = leading
    if not found and not mixed:
        raise Unsupported(
            "the optimiser muon is for convolutions, and this network has none that it can train: use sgd or adamw"
        )
    result = []
    for group in groups:
        kinds: dict[int | None, list[Tensor]] = {}
        for parameter in group["params"]:
            kinds.setdefault(found.get(id(parameter)), []).append(parameter)
        result += [group | {"params": own, "leading": leading} for leading, own in kinds.items()]
    return result
