"""Weights that are mixed from templates which layers and members share.

    w_i = Σ_l α_{i,l} T_l            member i, templates T_l of a bank, or of a blob of numbers that is read round and round

A mixed layer keeps its coefficients α; the templates belong to the ensemble.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .affine import Affine, get_weight_and_bias
from .gradients import scale_gradient
from .initialization import measure_scale
from .members import Converted, MemberLayer


class Group(dict[str, nn.Module]):
    """Layers of one type and shape, by name."""

    @property
    def size(self) -> int:
        """Of one layer's weight."""
        return get_weight_and_bias(next(iter(self.values())))[0].numel()

    @property
    def weights(self) -> int:
        """Of all layers' weights."""
        return sum(get_weight_and_bias(layer)[0].numel() for layer in self.values())

    @property
    def scale(self) -> float:
        """The root mean square of all layers' weights, as they are drawn."""
        layers = [get_weight_and_bias(layer)[0] for layer in self.values()]
        return (sum(measure_scale(weight) ** 2 * weight.numel() for weight in layers) / self.weights) ** 0.5

    @property
    def biases(self) -> int:
        found = [get_weight_and_bias(layer)[1] for layer in self.values()]
        return sum(bias.numel() for bias in found if bias is not None)


def draw_coefficients(layers: int, templates: int) -> Tensor:
    """`[L, t]`: semi-orthogonal, then every row of length one."""
    matrix = torch.empty(layers, templates)
    nn.init.orthogonal_(matrix)
    return nn.functional.normalize(matrix, dim=1)


class Bank(nn.Module):
    """The templates of a group, `[n, *shape]`."""

    def __init__(self, count: int, group: Group) -> None:
        super().__init__()
        like, _ = get_weight_and_bias(next(iter(group.values())))
        self.scale = group.scale
        self.templates = nn.Parameter(torch.randn(count, *like.shape, dtype=like.dtype, device=like.device) * self.scale)

    def mix(self, coefficients: Tensor, where: Tensor, shape: torch.Size) -> Tensor:
        """`[M, t]` coefficients → one weight a member, `[M, *shape]`."""
        dense = coefficients.new_zeros(len(coefficients), len(self.templates)).scatter_add(1, where, coefficients)
        return (dense @ self.templates.flatten(1)).unflatten(1, shape)


class Blob(nn.Module):
    """One row of numbers, read round and round."""

    def __init__(self, count: int, group: Group) -> None:
        super().__init__()
        like, _ = get_weight_and_bias(next(iter(group.values())))
        self.scale = group.scale
        self.numbers = nn.Parameter(torch.randn(count, dtype=like.dtype, device=like.device) * self.scale)

    def mix(self, coefficients: Tensor, starts: Sequence[int], shape: torch.Size) -> Tensor:
        """All members take their templates from the same places."""
        size, count = shape.numel(), len(self.numbers)
        ring = self.numbers.repeat(-(-(size + count) // count))
        templates = torch.stack([ring[start : start + size] for start in starts])
        return (coefficients @ templates).unflatten(1, shape)


class TemplateLayer(Converted):
    """Coefficients `[M, t]` of a bank's templates, and biases `[M, C]` or None.

    `members` is how many members share the templates, where that is more than the layer has coefficients for.
    """

    undecayed = ("coefficients",)

    def __init__(self, layer: nn.Module, bank: Bank | Blob, alpha: Tensor, where: Tensor, members: int | None = None) -> None:
        super().__init__()
        self.affine = Affine(layer)
        self._bank = (bank,)  # registered once, with the ensemble, however many layers use it
        self.coefficients = nn.Parameter(alpha.contiguous())
        self.where: Tensor
        self.register_buffer("where", where.contiguous().to(alpha.device), persistent=False)
        self.starts: list[int] = where[0].tolist()
        weight, bias = get_weight_and_bias(layer)
        own = (bank.scale / measure_scale(weight)) ** 2 if isinstance(bank, Blob) else 1.0
        self.mix_factor = own / math.sqrt(members or len(alpha))
        self.coefficient_factor = 1 / max(weight.numel() * bank.scale**2, 1e-12)
        self.biases = None
        if bias is not None:
            self.biases = nn.Parameter(bias.detach().expand(len(alpha), *bias.shape).clone(), bias.requires_grad)

    def weights(self, coefficients: Tensor, where: Tensor) -> Tensor:
        """`[M, t]` → `[M, *shape]`"""
        bank, shape = self._bank[0], self.affine.template.weight.shape
        coefficients = scale_gradient(coefficients, self.coefficient_factor)
        mixed = bank.mix(coefficients, self.starts if isinstance(bank, Blob) else where, shape)  # type: ignore[arg-type]
        return scale_gradient(mixed, self.mix_factor)

    def to_plain(self, index: int) -> nn.Module:
        own = self.weights(self.coefficients[index : index + 1], self.where[index : index + 1])
        return self.affine.make_layer(own[0], None if self.biases is None else self.biases[index])


class Mixed(TemplateLayer, MemberLayer):
    """A layer whose weights are mixed for every member."""

    def respond(self, x: Tensor) -> Tensor:
        return self.affine.run_each(
            x,
            self.weights(self.pick(self.coefficients), self.pick(self.where)),
            None if self.biases is None else self.pick(self.biases),
        )


class MixedPart(TemplateLayer):
    """The same in a network that one member has for itself: there is one row of coefficients."""

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weights(self.coefficients, self.where)[0]
        return self.affine(x, weight, None if self.biases is None else self.biases[0])

    def to_plain(self, index: int) -> nn.Module:
        return super().to_plain(0)
