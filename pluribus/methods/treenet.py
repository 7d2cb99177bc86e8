"""TreeNet: a common trunk, a branch for every member.

Everything from one module on is the members' own; all before it is shared and runs once. Branch 0 keeps the weights of the
network, the others are drawn anew.

With `of=MCDropout(…)` the branches have dropout that stays on in evaluation: M branches, K draws of each. All before the first
dropout still runs once.

Lee et al., "Why M heads are better than one: training a diverse ensemble of deep networks", 2015. In Havasi et al., ICLR 2021,
the first two of three residual groups are the trunk.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import nn

from ..core.affine import AFFINE
from ..core.dropout import DROPOUTS, Dropped, Dropping, Masked, remark_functions
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.folding import copy_plain, prepare_member
from ..core.initialization import redraw_weights
from ..core.members import Converted, PerMember
from ..core.module_copies import copy_module
from ..core.passes import Plan
from ..core.spec import Keeps, Spec, require_count
from ..core.surgery import Subject, is_within, list_ancestors


@dataclass(frozen=True)
class TreeNet(Spec):
    """Give each member its own copy of the module `split` and of everything after it.

    "After" is the order in which modules run on the example, or, without one, in which they were registered. Without `split`
    the network is split between two blocks, as near as possible to half of its layers. `of=MCDropout()` samples dropout in
    every branch: in the network's own dropout layers, or, if it has none, before every layer of the branches.
    """

    name: ClassVar[str] = "treenet"
    keeps: ClassVar[Keeps] = "member 0"
    size_option: ClassVar[str | None] = "members"
    nested_option: ClassVar[str | None] = "of"
    benchmark_options: ClassVar[Mapping[str, Any]] = {"members": 4}
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"

    takes_apart: ClassVar[tuple[str, ...]] = ("conv1d",)

    members: int = 3
    split: str | None = None
    of: Spec | None = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is the base network")
        if self.of is not None and (not isinstance(self.of, Spec) or self.of.name != "mc-dropout"):
            raise TypeError(
                f"of must be MCDropout(…) or None, got {self.of!r}: DeepEnsemble(of=…) and Mixture(of=…) take any method"
            )

    def get_keeps(self) -> Keeps:
        return "member 0" if self.of is None else "other layers"

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
        branch = find_tail(subject, split, self.of is not None)
        tie = subject.tied_across(branch)
        if tie:
            raise ConversionError(f"{tie}, and the split at {split} would part them: untie them, or split elsewhere")
        own = {name: subject.modules[name] for name in branch}
        # All modules of a branch are copied together, so that what they share they go on sharing.
        branches = [copy.deepcopy(own)]
        for _ in range(self.members - 1):
            fresh = redraw_weights(copy_module(subject.net))
            branches.append({name: fresh.get_submodule(name) for name in branch})
        replaced: dict[str, nn.Module] = {name: PerMember([b[name] for b in branches]) for name in branch}
        if self.of is None:
            return TreeEnsemble(subject, self, self.members, replaced)
        return DrawnTree(subject, self, self.members, replaced | put_dropout(subject, self.of, replaced))


def put_dropout(subject: Subject, of: Any, branches: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """Dropout that stays on, by the options of an MCDropout: the network's own, or one before every layer of a branch."""
    if subject.layers(DROPOUTS):
        own = subject.select(DROPOUTS, of.include, of.exclude)
        inside = [name for name in own if any(is_within(name, branch) for branch in branches)]
        if inside:
            raise ConversionError(f"the dropout {inside[0]} lies in a module with parameters of its own: split after it")
        idle = not any(getattr(layer, "p") for layer in own.values())  # noqa: B009
        return {name: Dropping(layer, of.rate if idle else getattr(layer, "p")) for name, layer in own.items()}  # noqa: B009
    places = [name for name in subject.select(AFFINE, of.include, of.exclude) if name in branches]
    if not places:
        raise ConversionError("no layer of the branches can have dropout before it: split earlier")
    return {name: Dropped(branches[name], of.rate) for name in places}


def find_tail(subject: Subject, split: str, innermost: bool = False) -> list[str]:
    """The outermost modules with a state of their own from `split` on; or the innermost, so that what lies between them, such
    as dropout, can be replaced, too."""
    order = subject.order()
    around = set(list_ancestors(split))
    found: list[str] = []
    for name in order[order.index(split) :]:
        stateful = any(True for _ in subject.modules[name].parameters()) or any(True for _ in subject.modules[name].buffers())
        container = isinstance(subject.modules[name], (nn.ModuleList, nn.ModuleDict))  # never runs itself
        container = container or (innermost and not has_own_state(subject.modules[name]))
        if name in around or container or not stateful or any(a in found for a in list_ancestors(name)):
            continue
        found.append(name)
    if not found:
        raise ConversionError(f"nothing from {split} on has parameters: split earlier")
    return found


def has_own_state(module: nn.Module) -> bool:
    """Whether parameters or buffers belong to the module itself, and not to modules inside it."""
    return any(True for _ in module.parameters(recurse=False)) or any(True for _ in module.buffers(recurse=False))


def find_split(subject: Subject, share: float = 0.5) -> str:
    """The block, in the chain of blocks that the network is, before which about this share of its layers lies."""
    layers = [name for name in subject.order() if isinstance(subject.modules[name], (*AFFINE, nn.RNNBase))]
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


class DrawnTree(TreeEnsemble):
    """M branches, and in evaluation K draws of each: member i·K + k is draw k of branch i."""

    sampled = True

    def __init__(self, subject: Subject, spec: TreeNet, members: int, replaced: dict[str, nn.Module]) -> None:
        super().__init__(subject, spec, members, replaced)
        self.branches = members
        self._samples = spec.of.samples  # type: ignore[union-attr]

    def complete_plan(self, plan: Plan, batch: Any) -> Plan:
        remark_functions(self, plan, batch)
        return plan

    def count_members(self, training: bool) -> int:
        return self.branches * (1 if training else self.samples) if self.sampled else self._count

    def count_networks(self) -> int:
        return self.branches

    def count_probed(self) -> int:
        return 2 * self.branches if self.sampled else self._count

    def freeze(self, samples: int | None = None) -> Ensemble:
        """A copy with `samples` fixed draws of every branch."""
        return super().freeze(self.branches * (self.samples if samples is None else samples))

    def member(self, index: int) -> nn.Module:
        draws = self._count // self.branches

        def take(layer: Converted) -> nn.Module:
            if isinstance(layer, Dropped):
                assert isinstance(layer.layer, PerMember)
                return Masked(layer.dropout.to_plain(index), layer.layer.to_plain(index // draws))
            return layer.to_plain(index // draws if isinstance(layer, PerMember) else index)

        if not 0 <= index < self.count_plain_members():
            return super().member(index)  # raises, with the reason
        return prepare_member(copy_plain(self.net, take), self.output)

    def fold(self) -> nn.Module:
        """Frozen draws side by side. Raises `Unsupported` before they are frozen."""
        return Ensemble.fold(self)
