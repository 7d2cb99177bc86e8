"""Naive multihead: one network, M last layers.

The cheapest ensemble and the least diverse one: all heads see the same features of the same input. Head 0 keeps the weights
of the network; the others are drawn anew at its scale, because equal heads on equal data would never part.

A baseline in Havasi et al., ICLR 2021 (MIMO with ρ = 1); Lee et al., "Why M heads are better than one", 2015.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, get_weight_and_bias
from ..core.ensemble import Ensemble
from ..core.folding import SplitMembers, copy_plain
from ..core.heads import Heads, check_end
from ..core.initialization import draw_copies
from ..core.spec import Keeps, Spec, require_count
from ..core.surgery import Subject


@dataclass(frozen=True)
class Multihead(Spec):
    """Give the network `members` last layers. `last` names that layer; without it, the last to run (or be registered)."""

    name: ClassVar[str] = "multihead"
    keeps: ClassVar[Keeps] = "member 0"
    size_option: ClassVar[str | None] = "members"
    benchmark_options: ClassVar[Mapping[str, Any]] = {"members": 4}
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"members": (2, 3, 4)}

    members: int = 3
    last: str | None = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one head is the base network")

    def convert(self, subject: Subject) -> Ensemble:
        last = subject.one(AFFINE, self.last, -1, "last")
        return MultiheadEnsemble(subject, self, self.members, {last: make_heads(subject.modules[last], self.members)})


def make_heads(layer: nn.Module, members: int) -> Heads:
    def start(old: Tensor) -> Tensor:
        return torch.cat([old.detach().unsqueeze(0), draw_copies(old, members - 1)])

    weight, bias = get_weight_and_bias(layer)
    return Heads(layer, start(weight), None if bias is None else start(bias))


class MultiheadEnsemble(Ensemble):
    def check_order(self, order: list[str]) -> None:
        super().check_order(order)
        check_end(self, order, "last", Heads)

    def fold(self) -> nn.Module:
        """An ordinary network with M heads; M networks, if something goes around the heads."""
        plan = self.executor.plan
        if plan is None or plan.branch.kind != "layer":
            return super().fold()
        net = copy_plain(self.net, lambda layer: cast(Heads, layer).fold())
        return SplitMembers(net, self._count, self.output).eval()
