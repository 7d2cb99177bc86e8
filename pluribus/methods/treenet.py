"""TreeNet: a common trunk, a branch for every member.

Everything from one module on is the members' own; all before it is shared and runs once. Branch 0 keeps the weights of the
network, the others are drawn anew.

Lee et al., "Why M heads are better than one: training a diverse ensemble of deep networks", 2015. In Havasi et al., ICLR 2021,
the first two of three residual groups are the trunk.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import nn

from ..core.affine import AFFINE
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.initialization import redraw_weights
from ..core.members import PerMember
from ..core.spec import Keeps, Spec, require_count
from ..core.surgery import Subject, is_within, list_ancestors


@dataclass(frozen=True)
class TreeNet(Spec):
    """Give each member its own copy of the module `split` and of everything after it.

    "After" is the order in which modules run on the example, or, without one, in which they were registered. Without `split`
    the network is split between two blocks, as near as possible to half of its layers.
    """

    name: ClassVar[str] = "treenet"
    keeps: ClassVar[Keeps] = "member 0"
    size_option: ClassVar[str | None] = "members"
    benchmark_options: ClassVar[Mapping[str, Any]] = {"members": 4}
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"

    members: int = 3
    split: str | None = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is the base network")

    def list_candidates(self, subject: Subject) -> Mapping[str, tuple[Any, ...]]:
        """Where to split: half-way, which is the default, after a quarter, and after three quarters of the layers."""
        halfway = find_split(subject)
        places = (find_split(subject, share) for share in (0.25, 0.75))
        return {"split": (None, *dict.fromkeys(place for place in places if place != halfway)), "members": (2, 3)}

    def convert(self, subject: Subject) -> Ensemble:
        split = find_split(subject) if self.split is None else self.split
        if split not in subject.order():
            raise ConversionError(
                f"split={split!r} names no module that runs. It could be:\n" + "\n".join(f"  {n}" for n in subject.order())
            )
        branch = find_tail(subject, split)
        tie = subject.tied_across(branch)
        if tie:
            raise ConversionError(f"{tie}, and the split at {split} would part them: untie them, or split elsewhere")
        own = {name: subject.modules[name] for name in branch}
        # All modules of a branch are copied together, so that what they share they go on sharing.
        branches = [copy.deepcopy(own)]
        for _ in range(self.members - 1):
            fresh = copy.deepcopy(own)
            redraw_weights(nn.ModuleList(fresh.values()))
            branches.append(fresh)
        return TreeEnsemble(subject, self, self.members, {name: PerMember([b[name] for b in branches]) for name in branch})


def find_tail(subject: Subject, split: str) -> list[str]:
    """The outermost modules with a state of their own from `split` on."""
    order = subject.order()
    around = set(list_ancestors(split))
    found: list[str] = []
    for name in order[order.index(split) :]:
        stateful = any(True for _ in subject.modules[name].parameters()) or any(True for _ in subject.modules[name].buffers())
        container = isinstance(subject.modules[name], (nn.ModuleList, nn.ModuleDict))  # never runs itself
        if name in around or container or not stateful or any(a in found for a in list_ancestors(name)):
            continue
        found.append(name)
    if not found:
        raise ConversionError(f"nothing from {split} on has parameters: split earlier")
    return found


def find_split(subject: Subject, share: float = 0.5) -> str:
    """The block, in the chain of blocks that the network is, before which about this share of its layers lies."""
    layers = [name for name in subject.order() if isinstance(subject.modules[name], AFFINE)]
    if len(layers) < 2:
        raise ConversionError("a network with fewer than two layers cannot be split: use DeepEnsemble")
    chain = [name for name in subject.order() if all(_is_chain(subject.modules[a]) for a in list_ancestors(name))]

    def before(block: str) -> int:
        inside = [index for index, name in enumerate(layers) if is_within(name, block)]
        return min(inside) if inside else 0

    blocks = [name for name in chain if before(name) > 0]
    if not blocks:
        raise ConversionError("the network is one block: name the module to split at, as in TreeNet(split='body.2')")
    return min(blocks, key=lambda name: (abs(before(name) - share * len(layers)), name.count(".")))


def _is_chain(module: nn.Module) -> bool:
    return isinstance(module, (nn.Sequential, nn.ModuleList, nn.TransformerEncoder))


class TreeEnsemble(Ensemble):
    def check_order(self, order: list[str]) -> None:
        super().check_order(order)
        modules = dict(self.net.named_modules())
        first = next(index for index, name in enumerate(order) if isinstance(modules[name], PerMember))
        inside = [name for name, module in modules.items() if isinstance(module, PerMember)]
        for name in order[first:]:
            shared = not any(is_within(name, part) for part in inside)
            if shared and any(True for _ in modules[name].parameters(recurse=False)):
                self.conversion.remark(
                    f"{name} runs after the split, but was registered before it, so all members share it: pass example="
                )

    def fold(self) -> nn.Module:
        raise self.refuse("folded form", "plain members would each run the trunk that they share; use member(i)")
