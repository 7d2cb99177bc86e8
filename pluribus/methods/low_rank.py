"""LoRA-ensembles: one trained network, M members by additions of low rank to its weights.

    W_m = W + (α / r) B_m A_m,     y_m = x W + (α / r) (x A_m) B_m + b_m          A_m `[r, I]`, B_m `[O, r]`

B_m begins as zero, so that every member begins as the network and gives its answers exactly. A_m is drawn from N(0, 1/fan_in)
for each member. The first step moves B_m by the gradient as A_m shows it, which differs from member to member: so members part
on equal data. A member costs r numbers for each input and output of a layer, and a bias.

Of a convolution A_m is a convolution with its kernel and r outputs, and B_m acts on each place alone; with groups, each group
has r outputs of its own. A layer whose smaller side is below r has that side as its rank. The product with W is computed once
where members share their input, and A_m of all members is then one wide layer. Full weights of members are not built, but by
`fold()` and `member(i)`.

The paper adds to the four projections of attention, and freezes all else but the head. Here every layer that surgery can
replace gets its additions (`include` names fewer; the projections inside nn.MultiheadAttention cannot be named), W is trained
unless `frozen` says otherwise, and biases are each member's own. Normalisation layers stay shared.

Mühlematter et al., "LoRA-Ensemble: Efficient Uncertainty Modelling for Self-Attention Networks", 2024; Hu et al., "LoRA", 2021.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, Affine, get_weight_and_bias
from ..core.ensemble import Ensemble
from ..core.members import MemberLayer
from ..core.spec import Keeps, Spec, require_choice, require_count, require_number
from ..core.surgery import Patterns, Subject


@dataclass(frozen=True)
class LowRank(Spec):
    """Add a product of `rank` columns and rows to every layer's weight for each member, times `scale` / `rank`.

    `frozen` keeps the weights of these layers as they are, and trains the additions and the biases alone: for networks that
    are too large to train.
    """

    name: ClassVar[str] = "low-rank"
    keeps: ClassVar[Keeps] = "predictions"
    size_option: ClassVar[str | None] = "members"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"rank": (2, 4, 16), "scale": (2.0, 8.0, 32.0)}

    members: int = 4
    rank: int = 4
    scale: float = 8.0
    frozen: bool = False
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is the base network")
        require_count("rank", self.rank, 1, "members without additions are equal")
        require_number("scale", self.scale, positive=True)  # equal members never part
        require_choice("frozen", self.frozen, (False, True))

    def convert(self, subject: Subject) -> Ensemble:
        layers = subject.select(AFFINE, self.include, self.exclude)
        return LowRankEnsemble(subject, self, self.members, {name: Added(layer, self) for name, layer in layers.items()})


class LowRankEnsemble(Ensemble):
    reduction = "mean"


class Added(MemberLayer):
    """A `shared` weight; for each member `down`, `up` and `biases` `[M, O]` or None.

    `down` is shaped as the weight of the layer with r outputs a group: `[M, g·r, I/g, …]`, if transposed `[M, I, r, …]`.
    `up` is that of a layer on each place alone, `[M, O, r]`, of a convolution `[M, O, r, 1, …]`.
    """

    matrices: ClassVar[Mapping[str, int]] = {"shared": 0, "down": 1}

    def __init__(self, layer: nn.Module, spec: LowRank) -> None:
        super().__init__()
        self.affine = affine = Affine(layer)
        weight, bias = get_weight_and_bias(layer)
        groups, kernel = affine.groups, weight.shape[2:]
        rank = min(spec.rank, affine.outputs // groups, affine.inputs // groups * math.prod(kernel))
        self.factor = spec.scale / rank
        self.outer = Affine(make_pointwise(len(kernel), groups * rank, affine.outputs, groups))
        self.shared = nn.Parameter(weight.detach().clone(), weight.requires_grad and not spec.frozen)
        sides = (groups * rank, weight.shape[1]) if affine.transposed is None else (affine.inputs, rank)
        drawn = torch.randn(spec.members, *sides, *kernel, dtype=weight.dtype, device=weight.device)
        self.down = nn.Parameter(drawn / math.sqrt(affine.fan_in))
        self.up = nn.Parameter(weight.new_zeros(spec.members, affine.outputs, rank, *(1 for _ in kernel)))
        self.biases = None
        if bias is not None:
            self.biases = nn.Parameter(bias.detach().expand(spec.members, *bias.shape).clone(), bias.requires_grad)

    def respond(self, x: Tensor) -> Tensor:
        down, up, biases = self.pick(self.down), self.pick(self.up), None if self.biases is None else self.pick(self.biases)
        shared = self.affine(x.flatten(0, 1), self.shared).unflatten(0, x.shape[:2])  # once, if the members share x
        return shared + self.outer.run_each(self.reduce(x, down), self.factor * up, biases)

    def reduce(self, x: Tensor, down: Tensor) -> Tensor:
        """`[1 or M, B, …]` → `[M, B, …]` with g·r channels. Of a shared batch one convolution computes those of all members."""
        is_wide = not self.affine.linear and self.affine.groups == 1 and self.affine.transposed is None
        if is_wide and len(x) == 1:
            return self.affine(x.squeeze(0), down.flatten(0, 1)).unflatten(1, (len(down), -1)).movedim(1, 0)
        return self.affine.run_each(x, down)

    def to_plain(self, index: int) -> nn.Module:
        groups = self.affine.groups
        up, down = self.up[index].flatten(1).unflatten(0, (groups, -1)), self.down[index].unflatten(0, (groups, -1))
        equation = "gor,gri...->goi..." if self.affine.transposed is None else "gor,gir...->gio..."
        added = torch.einsum(equation, up, down).flatten(0, 1)
        return self.affine.make_layer(self.shared + self.factor * added, None if self.biases is None else self.biases[index])


def make_pointwise(axes: int, inputs: int, outputs: int, groups: int) -> nn.Module:
    """A layer on each place alone, of so many axes, without numbers: its weights are the members'."""
    if axes == 0:
        return nn.Linear(inputs, outputs, device="meta")
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    return kind(inputs, outputs, 1, groups=groups, device="meta")
