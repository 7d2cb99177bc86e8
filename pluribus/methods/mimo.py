"""MIMO: M inputs in, M answers out, one network between.

    training:   h = Σ_m W_m x_m + b,    ŷ_m = V_m f(h),    loss = Σ_m −log p(y_m | x_1 … x_M)
    test:       x_1 = … = x_M = x, so the first layer is one ordinary layer with Σ_m W_m

The members share the whole body but learn independent functions, because features of one input help no other output.

How a batch is dealt: `main = shuffle(tile(range(B), r))`; member m takes `main` with its first `int(B·r·(1−ρ))` entries
shuffled once more. So every member sees every row r times, and all members share the same last share ρ of the batch.

Whatever the network does to the input before its first layer (a flatten, a normalisation) it does row by row; the first layer
then merges the M rows. A network that goes on using the size of its input gets the M inputs side by side instead, as M times
the channels. The last layer answers for every member, and whatever follows it sees plain rows again.

Havasi et al., "Training independent subnetworks for robust prediction", ICLR 2021.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..core import pytrees
from ..core.affine import AFFINE, Affine, get_weight_and_bias
from ..core.branching import is_close
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.first_layers import find_first_layers
from ..core.folding import SplitMembers, copy_plain
from ..core.heads import Heads, check_end
from ..core.initialization import center, draw_copies
from ..core.members import Converted, Likeness
from ..core.passes import Branch, Plan
from ..core.pytrees import Views
from ..core.spec import Keeps, Spec, require_choice, require_count, require_share
from ..core.surgery import Subject, carry_hooks

INPUTS = (*AFFINE, nn.Embedding)
SMALLEST = ((0.6, 3_000), (0.3, 7_000), (0.0, 18_000))
"""Weights a member, by the least ρ that it is for: as MIMO, no smaller network gained two hundredths of its calibrated NLL
(papers/mimo/results/capacity.cpu.json: the digits and MNIST)."""


@dataclass(frozen=True)
class MIMO(Spec):
    """Give the first layer M inputs and the last layer M outputs.

    `first` and `last` name these layers; without them they are found by running the example, or taken in the order in which
    the layers were registered, which the first pass then checks. A network with several inputs has a first layer for each of
    them: `first=("image.0", "table.0")`; with an example they are found. `input_repetition` is ρ, `batch_repetition` is r. The
    default ρ = 0.6 is what networks with little capacity to spare need (docs/mimo.md); the paper's wide networks on CIFAR were
    trained with ρ = 0.
    `init="keep"` keeps a trained network's predictions; `init="fresh"` draws both layers anew.
    """

    name: ClassVar[str] = "mimo"
    keeps: ClassVar[Keeps] = "predictions"
    size_option: ClassVar[str | None] = "members"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "members": (2, 3),
        "input_repetition": (0.0, 0.3, 0.6, 0.8),
        "batch_repetition": (1, 2),
    }

    other_steps: ClassVar[Mapping[str, str]] = {"sgd": "the losses of all M members add up on the rows that they share"}

    members: int = 3
    input_repetition: float = 0.6
    batch_repetition: int = 1
    first: str | tuple[str, ...] | None = None
    last: str | None = None
    init: Literal["keep", "fresh"] = "keep"

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is the base network")
        require_count("batch_repetition", self.batch_repetition, 1, "every row is seen at least once")
        require_share("input_repetition", self.input_repetition)
        require_choice("init", self.init, ("keep", "fresh"))
        if self.input_repetition == 1 and self.init == "keep":
            raise ValueError('input_repetition=1 gives all heads the same data, and equal ones never part: use init="fresh"')

    def get_keeps(self) -> Keeps:
        return "other layers" if self.init == "fresh" else self.keeps

    def convert(self, subject: Subject) -> Ensemble:
        subject.require_rows("MIMO deals other rows to each member")
        last = subject.one(AFFINE, self.last, -1, "last")
        named = self.first if isinstance(self.first, tuple) else (self.first,)
        ensemble = self.convert_at(subject, [subject.one(INPUTS, each, 0, "first") for each in named], last)
        if self.first is not None or sum(1 for _ in pytrees.iterate_tensors(subject.example)) < 2:
            return ensemble
        try:
            ensemble.executor.prepare(ensemble, subject.example)
        except ConversionError:
            several = find_first_layers(subject, subject.layers(INPUTS))
            if len(several) > 1 and last not in several:
                return replace(self, first=tuple(several)).convert_at(subject, several, last)
        return ensemble

    def convert_at(self, subject: Subject, firsts: list[str], last: str) -> Ensemble:
        """The ensemble in which these layers merge the members' inputs, one layer for each input of the network."""
        first = firsts[0]
        if last in firsts:
            raise ConversionError(f"MIMO needs two layers, a first and a last one, and both are {last or 'the network'}")
        inner, outer = subject.modules[first], subject.modules[last]
        replaced: dict[str, nn.Module] = {name: Merge(subject.modules[name], self) for name in firsts}
        ensemble = MIMOEnsemble(subject, self, self.members, replaced | {last: make_heads(outer, self)})
        if self.init == "keep" and not get_weight_and_bias(inner)[0].requires_grad:
            ensemble.conversion.notes.append(
                f"the first layer, {first}, is frozen: each member's weights in it stay as they were drawn, and members can "
                'part behind it only; unfreeze it, or let init="fresh" train it'
            )
        ensemble.conversion.notes.extend(self.describe_capacity(subject))
        return ensemble

    def describe_capacity(self, subject: Subject) -> list[str]:
        """A note if a classifier is smaller than any that gained from so many members. Small regressions gained, too
        (results/uci-energy)."""
        if subject.task != "classification":
            return []
        each = sum(parameter.numel() for parameter in subject.net.parameters()) // self.members
        least = next(weights for share, weights in SMALLEST if self.input_repetition >= share)
        if each >= least:
            return []
        advice = "fewer members or a wider network" + (", or input_repetition=0.6" if self.input_repetition < 0.6 else "")
        return [
            f"too small for {self.members} members? It has {each:,} weights a member; with input_repetition="
            f"{self.input_repetition:g}, networks with fewer than {least:,} gained nothing on digits and MNIST: try {advice} "
            "(docs/mimo.md)"
        ]


def make_heads(layer: nn.Module, spec: MIMO) -> Heads:
    """M copies of the last layer. Equal ones part all the same: their targets differ."""
    weight, bias = get_weight_and_bias(layer)
    if spec.init == "fresh":
        weights = draw_copies(weight, spec.members)
    else:
        weights = weight.detach().expand(spec.members, *weight.shape).clone()
    biases = None if bias is None else bias.detach().expand(spec.members, *bias.shape).clone()
    return Heads(layer, weights, biases, weight.requires_grad or spec.init == "fresh")


@dataclass(frozen=True, eq=False)
class MIMOPlan(Plan):
    joins_channels: bool = False
    """The M inputs enter the network as channels, not as rows."""


class MIMOEnsemble(Ensemble):
    reduction = "sum"

    def deal(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        """Views and targets `[M, B·r, …]`."""
        assert isinstance(self.spec, MIMO)
        index = draw_dealing(pytrees.count_rows(x), self.spec).to(y.device)
        views = pytrees.map_tensors(lambda leaf: pytrees.gather_rows(leaf, index), x)
        return Views(views), y[index]

    def check_order(self, order: list[str]) -> None:
        super().check_order(order)
        check_end(self, order, "first", Merge)
        check_end(self, order, "last", Heads)

    def complete_plan(self, plan: Plan, batch: Any) -> Plan:
        head = next(name for name, module in self.net.named_modules() if isinstance(module, Heads))
        if plan.branch != Branch("layer", head):
            raise ConversionError(
                f"the last layer, {head}, cannot answer for all members, because something goes around it: choose "
                "another with MIMO(last=…)"
            )
        two = pytrees.take_rows(batch, 2)
        several = sum(isinstance(module, Merge) for module in self.net.modules()) > 1
        for joins_channels in (False,) if several else (False, True):
            found = MIMOPlan(**vars(plan), joins_channels=joins_channels)
            if self.merges(two, found):
                return found
        raise ConversionError(
            "the input goes around the first layer, so that it cannot merge the members' inputs: choose another with "
            "MIMO(first=…)"
        )

    def merges(self, batch: Any, plan: "MIMOPlan") -> bool:
        """Whether members that all see `batch` answer as they do on a plain batch."""
        tiled = pytrees.map_tensors(lambda leaf: leaf.expand(self._count, *leaf.shape), batch)
        try:
            together = self.executor.run_plan(self, batch, plan)
            return is_close(self.executor.run_plan(self, Views(tiled), plan), together)
        except (RuntimeError, ValueError):
            return False

    def join_views(self, views: Views, plan: Plan) -> Any:
        if not getattr(plan, "joins_channels", False):
            return super().join_views(views, plan)
        merge = next(module for module in self.net.modules() if isinstance(module, Merge))
        return pytrees.map_tensors(merge.join_channels, views.batch)

    def rotate(self, index: int) -> "MIMOEnsemble":
        """A copy in evaluation mode in which member `index` has the first place, the next one the second, and so on."""
        twin = copy.deepcopy(self).eval()
        with torch.no_grad():
            for layer in twin.net.modules():
                if isinstance(layer, (Merge, Heads)):
                    layer.weights.copy_(layer.weights.roll(-index, 0))
                if isinstance(layer, Heads) and layer.biases is not None:
                    layer.biases.copy_(layer.biases.roll(-index, 0))
        return twin

    def fold(self) -> nn.Module:
        """An ordinary network with M heads."""
        net = copy_plain(self.net, lambda layer: layer.fold() if isinstance(layer, Heads) else layer.to_plain(0))
        return SplitMembers(net, self._count, self.output).eval()


def draw_dealing(size: int, spec: MIMO) -> Tensor:
    """Which row each member sees at each place: `[M, B·r]`."""
    main = torch.arange(size).repeat(spec.batch_repetition)
    main = main[torch.randperm(len(main))]
    own = int(len(main) * (1 - spec.input_repetition))
    return torch.stack([torch.cat([main[:own][torch.randperm(own)], main[own:]]) for _ in range(spec.members)])


class Merge(Converted):
    """A first layer with weights for each of M inputs, summed: dealt `[M·B, …]` → `[B, …]`, or a plain batch as it is.

    The M weights start as 1/M of the layer's plus differences that add up to nothing: a trained network predicts as before,
    and each weight has the variance of a layer with M times the inputs.
    """

    matrices: ClassVar[Mapping[str, int]] = {"weights": 1}

    def __init__(self, layer: nn.Module, spec: MIMO) -> None:
        super().__init__()
        self.count = spec.members
        self.affine = None if isinstance(layer, nn.Embedding) else Affine(layer)
        self.likeness = Likeness(layer)
        self.padding = layer.padding_idx if isinstance(layer, nn.Embedding) else None
        weight, bias = get_weight_and_bias(layer)
        if isinstance(layer, nn.Embedding) and layer.max_norm is not None:
            raise ConversionError("MIMO cannot merge an embedding with max_norm: each lookup would change its weight")
        count = spec.members
        with torch.no_grad():
            drawn = draw_copies(weight, count) / count**0.5
            if self.padding is not None:
                drawn[:, self.padding] = 0  # it gets no gradient: what it starts as it stays
            weights = drawn if spec.init == "fresh" else weight / count + center(drawn)
            self.weights = nn.Parameter(weights, weight.requires_grad or spec.init == "fresh")
            self.offset = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)

    def forward(self, x: Tensor) -> Tensor:
        count, current = self.count, self.recall_pass()
        dealt = current is not None and current.dealt
        if self.affine is None:
            if not dealt:
                return F.embedding(x, self.weights.sum(0), self.padding)
            rows = x.unflatten(0, (count, -1))
            return torch.stack([F.embedding(rows[m], self.weights[m], self.padding) for m in range(count)]).sum(0)
        if not dealt:
            return self.affine(x, self.compute_once("weight", lambda: self.weights.sum(0), self.weights), self.offset)
        if current is not None and getattr(current.plan, "joins_channels", False):
            return self.affine(x, self.weights.movedim(0, 1).flatten(1, 2), self.offset)
        rows = x.unflatten(0, (count, -1))
        if self.affine.groups > 1 or self.affine.transposed is not None:
            each = [self.affine(rows[m], self.weights[m], self.offset if m == 0 else None) for m in range(count)]
            return torch.stack(each).sum(0)
        merged = self.join_channels(rows)
        if pytrees.is_channels_last(x):
            merged = merged.contiguous(memory_format=torch.channels_last)
        return self.affine(merged, self.weights.movedim(0, 1).flatten(1, 2), self.offset)

    def join_channels(self, views: Tensor) -> Tensor:
        """`[M, B, C, …]` → `[B, M·C, …]`; of features on the last axis, `[M, B, …, C]` → `[B, …, M·C]`."""
        if self.affine is None or self.affine.groups > 1 or self.affine.transposed is not None:
            raise ValueError("embeddings, grouped and transposed convolutions take their inputs as rows only")
        last = self.affine.linear and views.shape[-1] == self.affine.inputs
        axis = -2 if last else 1
        return views.movedim(0, axis).flatten(axis, axis + 1)

    def to_plain(self, index: int) -> nn.Module:
        if self.affine is None:
            weight = self.weights.detach().sum(0)
            return carry_hooks(self, nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=self.padding))
        return self.affine.make_layer(self.weights.sum(0), self.offset)
