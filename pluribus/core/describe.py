"""What an ensemble is, in numbers and in words."""

import textwrap
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from . import pytrees
from .affine import copy_to_meta
from .errors import Unsupported
from .flop_counting import count_call_flops
from .random_weights import find_random_layers

if TYPE_CHECKING:
    from .ensemble import Ensemble


@dataclass(frozen=True)
class Change:
    """A layer that was replaced."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Description:
    """The answer of `describe()`: print it, or read its fields.

    Parameters and FLOPs stand beside those of the network that was converted. "Deployed" is what `fold()` gives, once the
    ensemble has seen an input.
    FLOPs are of one forward pass over one row in evaluation mode; None where no input is known.
    """

    spec: str
    members: int
    changed: dict[str, str]
    left: dict[str, str]
    branch: str
    parameters: int
    deployed_parameters: int
    base_parameters: int
    flops: int | None
    deployed_flops: int | None
    base_flops: int | None
    keeps: str
    seen: bool
    foldable: bool
    notes: list[str] = field(default_factory=list)
    pruned: dict[str, str] = field(default_factory=dict)
    details: dict[str, list[str]] = field(default_factory=dict)
    """Lines under a title that the method adds: of a mixture, its templates and what its members share."""

    def __str__(self) -> str:
        lines = [self.spec, f"  members     {self.members} in evaluation; {self.branch}"]
        lines.append(f"  parameters  {_ratio(self.parameters, self.base_parameters)} of the network's {self.base_parameters:,}")
        if self.deployed_parameters != self.parameters:
            lines.append(f"    folded    {_ratio(self.deployed_parameters, self.base_parameters)}")
        if self.flops is not None:
            base = f" of the network's {self.base_flops:,}" if self.base_flops else "; the network's own could not be counted"
            lines.append(f"  FLOPs       {_ratio(self.flops, self.base_flops)}{base}")
            if self.deployed_flops is not None and self.deployed_flops != self.flops:
                lines.append(f"    folded    {_ratio(self.deployed_flops, self.base_flops)}")
        else:
            seen = "could not be counted" if self.seen else "known once it has seen an input: describe(x), or one pass"
            lines.append(f"  FLOPs       {seen}")
        lines.append(f"  keeps       {self.keeps}")
        lines.append(f"  changed     {len(self.changed)} module{'s' * (len(self.changed) != 1)}")
        lines += [f"    {name or '(the network itself)'}: {what}" for name, what in self.changed.items()]
        if self.left:
            lines.append(f"  left        {len(self.left)}")
            lines += [f"    {name or '(the network itself)'}: {why}" for name, why in self.left.items()]
        for title, said in self.details.items():
            lines += [f"  {title}", *(f"    {line}" for line in said)]
        lines += [f"  pruned      {name or 'the network itself'}: {what}" for name, what in self.pruned.items()]
        lines += [f"  note        {note}" for note in self.notes]
        return "\n".join(textwrap.fill(line, 80, subsequent_indent=" " * 14, break_on_hyphens=False) for line in lines)


KEPT = {
    "predictions": "the network's predictions, up to rounding",
    "member 0": "the network's predictions in member 0; the others start anew",
    "weights": "the network's weights; members scatter about its predictions",
    "other layers": "the weights of the layers it did not change",
}


@dataclass
class Conversion:
    """What conversion did to the network."""

    changes: list[Change]
    left: dict[str, str]
    """Layers that could not be converted, and why."""
    order: list[str] | None
    """Module names in the order in which they ran on the example, if there was one."""
    structure: list[str]
    """The network that was converted, in words: what `load` compares."""
    base: nn.Module
    """That network without its numbers, on the meta device."""
    notes: list[str] = field(default_factory=list)
    details: dict[str, list[str]] = field(default_factory=dict)
    """Lines under a title that the method adds to `describe()`."""

    def remark(self, text: str) -> None:
        """Warn, and keep the text for `describe()`."""
        if text not in self.notes:
            self.notes.append(text)
            warnings.warn(text, stacklevel=2)


def describe(ensemble: "Ensemble", example: Any) -> Description:
    """What `ensemble.describe(example)` returns."""
    executor, conversion = ensemble.executor, ensemble.conversion
    base = conversion.base
    if example is not None:
        executor.prepare(ensemble, example)
    row = example if example is None or ensemble.batch_axis is None else pytrees.slice_rows(example, 0, 1)
    deployed: nn.Module | None = None
    if executor.plan is not None:  # else it is not known yet whether something goes around the last layer
        with suppress(Unsupported):
            deployed = ensemble.fold()
    own = count_parameters(ensemble)
    flops = None if row is None else count_flops(ensemble, (row,))
    base_flops = None if row is None else count_flops(base, row)
    return Description(
        spec=str(ensemble.spec),
        members=ensemble.count_members(training=False),
        changed={change.name: f"{_short(change.before)} -> {change.after}" for change in conversion.changes},
        left=dict(conversion.left),
        branch=str(executor.plan.branch) if executor.plan else "where they part is found in the first pass",
        parameters=own,
        deployed_parameters=own if deployed is None else count_parameters(deployed),
        base_parameters=count_parameters(base),
        flops=flops,
        deployed_flops=flops if deployed is None or row is None else count_flops(deployed, row),
        base_flops=base_flops,
        keeps=KEPT[ensemble.spec.get_keeps()],
        seen=row is not None,
        foldable=deployed is not None,
        notes=[*conversion.notes, *(["its draws are fixed"] if ensemble.is_frozen else [])],
        details={title: list(lines) for title, lines in conversion.details.items()},
        pruned={name: said for name, layer in find_random_layers(ensemble.net).items() if (said := layer.describe_pruning())},
    )


def count_parameters(module: nn.Module) -> int:
    """Distinct parameters; a tied one counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


@torch.no_grad()
def count_flops(module: nn.Module, batch: Any) -> int | None:
    """On the meta device, where nothing is computed; None if the network cannot be run there."""
    hollow = copy_to_meta(module).eval()
    return count_call_flops(lambda: pytrees.call_network(hollow, pytrees.map_tensors(lambda leaf: leaf.to("meta"), batch)))


def _ratio(value: int, base: int | None) -> str:
    return f"{value:,} = {value / base:.2f}x" if base else f"{value:,}"


def _short(text: str) -> str:
    first, *rest = text.splitlines()
    return first + " … )" if rest else first
