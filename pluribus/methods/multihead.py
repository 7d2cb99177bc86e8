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
from ..core.initialization import draw_copies
from ..core.members import Members
from ..core.plain import Heads, Opened, check_ends
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

    members: int = 3
    last: str | None = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one head is the base network")

    def convert(self, subject: Subject) -> Ensemble:
        last = subject.one(AFFINE, self.last, -1, "last")
        members = Members(self.members)
        return MultiheadEnsemble(subject, self, members, {last: heads(subject.modules[last], members)})


def heads(layer: nn.Module, members: Members) -> Heads:
    def started(old: Tensor) -> Tensor:
        return torch.cat([old.detach().unsqueeze(0), draw_copies(old, members.count - 1)])

    weight, bias = get_weight_and_bias(layer)
    return Heads(layer, members, started(weight), None if bias is None else started(bias))


class MultiheadEnsemble(Ensemble):
    def check_order(self, order: list[str]) -> None:
        super().check_order(order)
        check_ends(self, order, "last", Heads)

    def fold(self) -> nn.Module:
        """An ordinary network with M heads; M networks, if something goes around the heads."""
        if self.branch is None or self.branch.kind != "layer":
            return super().fold()
        net = self.plain(lambda layer: cast(Heads, layer).folded())
        return Opened(net, self.state.count, self.output).eval()
