"""BatchEnsemble: one weight matrix, M members by rank-one factors.

    W_m = W ∘ (s_m r_mᵀ),     y_m = ((x ∘ r_m) W) ∘ s_m + b_m

A member costs two vectors and a bias a layer. All members run in one pass over a batch that holds them side by side.

Training batches are tiled (every member sees every row; the loss is the mean over the tiled batch) or split (every member
sees its own part; a batch that does not divide evenly starts again from its first rows).

Members differ only in their factors, so equal factors on equal data would never part: `init="ones"`, which keeps a trained
network's predictions exactly, is for split batches.

With `heads="own"` the last layer has a whole matrix for each member, drawn anew. `init="first-sign"` draws the first layer's r
at random from ±1 and sets all other factors to one, so that members see the same features with other signs and are alike in all
else. BatchEnsemble(members=32, heads="own", init="first-sign") on an MLP is the ensemble of TabM (Gorishniy et al., "TabM:
Advancing Tabular Deep Learning With Parameter-Efficient Ensembling", ICLR 2025), whose default without embeddings this
initialisation is. On the network for tables and one split of four UCI sets it is worth as much as one network (RMSE on
validation rows after 30 epochs 0.164 and 0.163, of four plain members 0.166), and takes ten times as long to train.

Wen et al., "BatchEnsemble: An Alternative Approach to Efficient Ensemble and Lifelong Learning", ICLR 2020. No weight decay
on the factors and shared BatchNorm are the settings of Havasi et al., ICLR 2021, where factors are drawn from N(1, ½²). With
that spread the members of a network that knew the digits lost half of its accuracy. The default of 0.05 is the largest that was
measured to keep it within a point; members part in training (results/ablations/pretrained.json).

Factors are divided by √(1 + spread²), so that their mean square is one: otherwise with a spread of ½ the variance of the
answers grows by 1.56 with every layer that no normalisation follows, and the first step of SGD moves the weights of a LeNet-5
four times as far as those of the base.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core import pytrees
from ..core.affine import AFFINE, Affine, get_weight_and_bias
from ..core.ensemble import Ensemble
from ..core.heads import OwnWeights, check_end
from ..core.initialization import draw_copies
from ..core.members import MemberLayer, PerMember
from ..core.pytrees import Views
from ..core.spec import Keeps, Spec, require_choice, require_count, require_number
from ..core.surgery import Patterns, Subject, copy_with

LARGE = 2**14
"""Numbers of a member that enter or leave a linear layer, from which on members go through it one after the other."""
CACHE = 2**19
"""Numbers that they may have together there."""
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


@dataclass(frozen=True)
class BatchEnsemble(Spec):
    """Give every layer rank-one factors for each member.

    `init` draws the factors: "normal" about one with standard deviation `spread`, "sign" at random from ±1, "first-sign" those
    of the first layer's inputs from ±1 and all others as one, or "ones". `heads` of their "own" are whole last layers, drawn
    anew, where "shared" ones have factors as all layers have; `last` names that layer, if it is not the last to run.
    `batchnorm` is "shared" or each member's "own"; `batches` are "tile"d or "split".
    """

    name: ClassVar[str] = "batch-ensemble"
    keeps: ClassVar[Keeps] = "weights"
    size_option: ClassVar[str | None] = "members"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"spread": (0.1, 0.25, 0.5)}

    members: int = 4
    init: Literal["normal", "sign", "first-sign", "ones"] = "normal"
    spread: float = 0.05
    batchnorm: Literal["shared", "own"] = "shared"
    batches: Literal["tile", "split"] = "tile"
    heads: Literal["shared", "own"] = "shared"
    last: str | None = None
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is the base network")
        require_choice("init", self.init, ("normal", "sign", "first-sign", "ones"))
        require_choice("batchnorm", self.batchnorm, ("shared", "own"))
        require_choice("batches", self.batches, ("tile", "split"))
        require_choice("heads", self.heads, ("shared", "own"))
        require_number("spread", self.spread, positive=True)  # equal members never part
        if self.init == "ones" and self.batches == "tile" and self.heads == "shared":
            raise ValueError('init="ones" with batches="tile" makes members that never part: use batches="split"')
        if self.last is not None and self.heads == "shared":
            raise ValueError('last names the layer of which members have their own: set heads="own", or leave last out')

    def get_keeps(self) -> Keeps:
        if self.heads == "own":
            return "other layers"
        return "predictions" if self.init == "ones" else self.keeps

    def convert(self, subject: Subject) -> Ensemble:
        if self.batches == "split":
            subject.require_rows('batches="split" deals other rows to each member')
        layers = subject.select(AFFINE, self.include, self.exclude)
        first = next(iter(layers))
        replaced: dict[str, nn.Module] = {name: RankOne(layer, self, name == first) for name, layer in layers.items()}
        if self.heads == "own":
            last = subject.one(AFFINE, self.last, -1, "last")
            replaced[last] = make_heads(subject.modules[last], self.members)
        if self.batchnorm == "own":
            for name, norm in subject.layers(BATCH_NORMS).items():
                replaced[name] = PerMember([copy_with(norm, {}) for _ in range(self.members)])
        return RankOneEnsemble(subject, self, self.members, replaced)


def make_heads(layer: nn.Module, members: int) -> OwnWeights:
    """A last layer for each member, at the scale of the network's."""
    weight, bias = get_weight_and_bias(layer)
    return OwnWeights(layer, draw_copies(weight, members), None if bias is None else draw_copies(bias, members))


class RankOneEnsemble(Ensemble):
    reduction = "mean"

    def check_order(self, order: list[str]) -> None:
        super().check_order(order)
        assert isinstance(self.spec, BatchEnsemble)
        if self.spec.heads == "own":
            check_end(self, order, "last", OwnWeights)

    def deal(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        assert isinstance(self.spec, BatchEnsemble)
        if self.spec.batches == "tile":
            return super().deal(x, y)
        size, count = pytrees.count_rows(x), self._count
        each = -(-size // count)
        index = (torch.arange(each * count) % size).view(count, each)
        return Views(pytrees.map_tensors(lambda leaf: pytrees.gather_rows(leaf, index), x)), y[index.to(y.device)]


class RankOne(MemberLayer):
    """A `shared` weight; for each member factors `r` `[M, I]` and `s` `[M, O]`, and `biases` `[M, O]` or None."""

    undecayed = ("r", "s")
    matrices: ClassVar[Mapping[str, int]] = {"shared": 0}

    def __init__(self, layer: nn.Module, spec: BatchEnsemble, is_first: bool) -> None:
        super().__init__()
        self.affine = Affine(layer)
        weight, bias = get_weight_and_bias(layer)
        self.shared = nn.Parameter(weight.detach().clone(), weight.requires_grad)
        self.r = nn.Parameter(draw_factors(weight, spec, self.affine.inputs, "sign" if is_first else "ones"))
        self.s = nn.Parameter(draw_factors(weight, spec, self.affine.outputs, "ones"))
        self.biases = None
        if bias is not None:
            self.biases = nn.Parameter(bias.detach().expand(spec.members, *bias.shape).clone(), bias.requires_grad)

    def respond(self, x: Tensor) -> Tensor:
        r, s, biases = self.pick(self.r), self.pick(self.s), None if self.biases is None else self.pick(self.biases)
        if (len(r) == 1 or not self.affine.linear) and len(r) * self.shared.numel() <= x.numel():
            # The weights are fewer than the numbers that enter, so it costs less to multiply them by the factors.
            weights = [self.affine.scale_channels(self.shared, *own) for own in zip(r, s, strict=True)]
            return self.affine.run_each(x, torch.stack(weights), biases)
        if self.affine.linear and can_fuse(x, self.shared):
            return Fused.apply(x.flatten(1, -2), self.shared, r, s, biases).unflatten(1, x.shape[1:-1])
        own = x * self.affine.align_channels(r, x)
        y = self.affine(own.flatten(0, 1), self.shared).unflatten(0, own.shape[:2])
        return self.affine.add_to_channels(y * self.affine.align_channels(s, y), biases)

    def to_plain(self, index: int) -> nn.Module:
        weight = self.affine.scale_channels(self.shared, self.r[index], self.s[index])
        return self.affine.make_layer(weight, None if self.biases is None else self.biases[index])


def can_fuse(x: Tensor, weight: Tensor) -> bool:
    """Whether `Fused` may stand for a linear layer: of large members, if nobody looks into it or changes its precision."""
    large = x[0].numel() * max(weight.shape) >= LARGE * weight.shape[1]
    watched = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    return large and x.dtype == weight.dtype and not watched and not torch.is_autocast_enabled(x.device.type)


class Fused(torch.autograd.Function):
    """The linear layer of all members, x `[1 or M, B, I]` → `[M, B, O]`, a few at a time, so that they stay in the caches.

        P_m = g_mᵀ x_m,    ∂W = Σ_m s_m r_mᵀ ∘ P_m,    ∂s_m = (W ∘ P_m) r_m,    ∂r_m = (W ∘ P_m)ᵀ s_m

    One product serves the gradients of three, and only x is kept for the way back: autograd would keep x ∘ r and what s is to
    multiply, too, and go over each of them twice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, r: Tensor, s: Tensor, biases: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight, r, s)
        ctx.biased = biases is not None
        y = x.new_empty(len(r), x.shape[1], len(weight))
        few, r, s = count_cached_members(y, x), r.unsqueeze(1), s.unsqueeze(1)
        shifts = [None] * len(r) if biases is None else biases.unsqueeze(1).split(few)
        for out, own, a, b, shift in zip(
            y.split(few), expand_members(x, r).split(few), r.split(few), s.split(few), shifts, strict=False
        ):
            torch.mm((own * a).flatten(0, 1), weight.T, out=out.flatten(0, 1))
            out.mul_(b) if shift is None else torch.addcmul(shift, out, b, out=out)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (g,), (x, weight, r, s) = gradients, ctx.saved_tensors
        bias = g.sum(1) if ctx.biased else None
        r, s = r.unsqueeze(1), s.unsqueeze(1)
        if torch.is_grad_enabled():  # somebody wants the gradient of the gradient: all members in one go, nothing in place
            into = (g * s) @ weight * r
            return into.sum(0, keepdim=True) if len(x) == 1 else into, *compute_shared_gradients(g, x, weight, r, s), bias
        g, few, rows = g.contiguous(), count_cached_members(g, x), expand_members(x, r)
        into = torch.empty_like(rows, memory_format=torch.contiguous_format) if ctx.needs_input_grad[0] else None
        found = []
        for m in range(0, len(r), few):
            part = slice(m, m + few)
            found.append(compute_shared_gradients(g[part], rows[part], weight, r[part], s[part]))
            if into is not None:
                torch.mm((g[part] * s[part]).flatten(0, 1), weight, out=into[part].flatten(0, 1))
                into[part] *= r[part]
        if into is not None and len(x) == 1:
            into = into.sum(0, keepdim=True)
        for_weight, for_r, for_s = zip(*found, strict=True)
        return into, torch.stack(for_weight).sum(0), torch.cat(for_r), torch.cat(for_s), bias


def compute_shared_gradients(g: Tensor, x: Tensor, weight: Tensor, r: Tensor, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the weight and of both factors, r `[M, 1, I]` and s `[M, 1, O]`."""
    product = g.mT @ x  # [M, O, I]
    seen = weight * product
    return (product * s.mT * r).sum(0), (seen * s.mT).sum(1), (seen * r).sum(2)


def expand_members(x: Tensor, r: Tensor) -> Tensor:
    return x.expand(len(r), *x.shape[1:])


def count_cached_members(y: Tensor, x: Tensor) -> int:
    """How many members stay in the caches together."""
    return max(1, CACHE // max(y[0].numel(), x[0].numel()))


def draw_factors(like: Tensor, spec: BatchEnsemble, size: int, if_first_sign: Literal["sign", "ones"]) -> Tensor:
    """`[M, size]`, of which `if_first_sign` says how `init="first-sign"` draws them."""
    ones = torch.ones(spec.members, size, dtype=like.dtype, device=like.device)
    init = if_first_sign if spec.init == "first-sign" else spec.init
    if init == "ones":
        return ones
    noise = torch.randn_like(ones)
    if init == "sign":
        return torch.where(noise < 0, -ones, ones)
    return (1 + spec.spread * noise) / math.sqrt(1 + spec.spread**2)
