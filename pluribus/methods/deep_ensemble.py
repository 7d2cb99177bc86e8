"""Deep ensembles: M networks, trained side by side; and ensembles of any other method.

    p(y | x) = (1/M) Σ_m p_m(y | x)

Member 0 keeps the weights of the network; the others are drawn anew. With `of`, every member is an ensemble of that
spec, made from a network of its own: DeepEnsemble(5, of=Variance()) averages over 5 × 20 answers.

Members of a network whose weights are all in linear layers are stacked: a layer's weights are one tensor `[M, O, I]`, and all
members run, and are trained, by one batched matrix product a layer. Many small networks then cost little more than one. Each
trains as it would alone; convolutions gain nothing from it and stay networks of their own.

Lakshminarayanan et al., "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles", 2017.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core.affine import get_weight_and_bias as affine_parts
from ..core.branching import Branch
from ..core.ensemble import Criterion, Ensemble, Views
from ..core.errors import ConversionError
from ..core.initialization import redraw_weights
from ..core.members import Members
from ..core.plain import Chain, Owned, Stack
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Subject


@dataclass(frozen=True)
class DeepEnsemble(Spec):
    """`members` networks, or ensembles `of` another spec.

    `stacked` runs linear layers of all members together; None does so where that is known to be safe and faster.
    """

    name: ClassVar[str] = "deep-ensemble"
    keeps: ClassVar[Keeps] = "member 0"
    size_option: ClassVar[str | None] = "members"
    nested_option: ClassVar[str | None] = "of"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    role: ClassVar[Literal["baseline", "reference", ""]] = "reference"

    members: int = 4
    of: Spec | None = None
    stacked: bool | None = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is the base network")
        if self.of is not None and not isinstance(self.of, Spec):
            raise TypeError(f"of must be a spec, such as Inner(copies=4), or None, got {self.of!r}")
        require_choice("stacked", self.stacked, (None, False, True))
        if self.stacked and self.of is not None:
            raise ValueError("stacked=True is for plain networks: leave it out, or of=")

    def kept(self) -> Keeps:
        return "member 0" if self.of is None or self.of.kept() == "predictions" else self.of.kept()

    def convert(self, subject: Subject) -> Ensemble:
        nets = [subject.net, *(redraw_weights(copy.deepcopy(subject.net)) for _ in range(self.members - 1))]
        obstacle = "" if self.stacked is False or self.of is not None else not_stackable(subject, bool(self.stacked))
        if self.stacked and obstacle:
            raise ConversionError(f"stacked=True needs a network whose weights are all in linear layers: {obstacle}")
        if self.stacked is not False and self.of is None and not obstacle:
            return stacked(subject, self, nets)
        parts = []
        for net in nets:
            own = Subject(net, subject.example, subject.task, subject.output, subject.ran)
            parts.append(Ensemble(own, self, Members(1), {}) if self.of is None else self.of.convert(own))
        return Deep(subject, self, parts)


def not_stackable(subject: Subject, asked: bool) -> str:
    """Why the members cannot be stacked, if they cannot. A module of the user's own may read its layers' weights, which a
    stacked layer has not: such a network is stacked only if that is asked for."""
    found = Subject(subject.net, order=subject.ran).layers((nn.Linear,))
    owned = {id(parameter) for layer in found.values() for parameter in layer.parameters()}
    for name, parameter in subject.net.named_parameters():
        if id(parameter) not in owned:
            return f"{name} is not in one that can be replaced"
    for name, _ in subject.net.named_buffers():
        return f"{name} is a buffer, which each member has for itself"
    foreign = [type(module).__name__ for module in subject.modules.values() if not type(module).__module__.startswith("torch.")]
    return f"{foreign[0]} has a forward of its own" if foreign and not asked else ""


def stacked(subject: Subject, spec: DeepEnsemble, nets: list[nn.Module]) -> Ensemble:
    state = Members(spec.members)
    replaced: dict[str, nn.Module] = {}
    for name in subject.layers((nn.Linear,)):
        weights, biases = zip(*(affine_parts(net.get_submodule(name)) for net in nets), strict=True)
        own = Owned(subject.modules[name], state, stack(weights), None if biases[0] is None else stack(biases))
        own.weights.requires_grad_(weights[0].requires_grad)
        if own.biases is not None:
            own.biases.requires_grad_(biases[0].requires_grad)
        replaced[name] = own
    return Ensemble(subject, spec, state, replaced)


def stack(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.stack([parameter.detach() for parameter in parameters])


class Deep(Ensemble):
    """Ensembles side by side. Their answers follow one another on the member axis."""

    settings = ()  # each part has its own

    def __init__(self, subject: Subject, spec: DeepEnsemble, parts: list[Ensemble]) -> None:
        super().__init__(subject, spec, Members(len(parts)), {}, nn.ModuleList(parts))
        self.changes, self.left, self.notes = parts[0].changes, parts[0].left, parts[0].notes
        self.order = parts[0].order
        self.penalised = parts[0].penalised
        self.branch = Branch("apart")

    @property
    def members(self) -> int:
        return sum(part.members for part in self.each())

    def each(self) -> list[Ensemble]:
        return [part for part in self.net.children() if isinstance(part, Ensemble)]

    def forward(self, x: Any) -> Tensor:
        self.ready(x)
        views = x.batch if isinstance(x, Views) else [x] * len(self.each())
        return torch.cat([part(view) for part, view in zip(self.each(), views, strict=True)])

    @property
    def at_once(self) -> int:
        return min(part.at_once for part in self.each())

    @property
    def channels_last(self) -> bool:
        return all(part.channels_last for part in self.each())

    def prepare(self, x: Any) -> None:
        views = x.batch if isinstance(x, Views) else [x] * len(self.each())
        for part, view in zip(self.each(), views, strict=True):
            part.ready(view)
        self.example = self.each()[0].example

    def deal(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        """Every part deals for itself."""
        views, targets = zip(*(part.deal(x, y) for part in self.each()), strict=True)
        shared = all(view is x for view in views)
        return x if shared else Views(views), torch.cat(targets)

    def objective(
        self,
        outputs: Tensor,
        targets: Tensor,
        criterion: Criterion | None = None,
        examples: int | None = None,
        temper: float = 1.0,
    ) -> Tensor:
        """The sum of the parts' own losses: each trains as it would alone."""
        sizes = [part.members for part in self.each()]
        pieces = zip(self.each(), outputs.split(sizes), targets.split(sizes), strict=True)
        return torch.stack([part.objective(out, target, criterion, examples, temper) for part, out, target in pieces]).sum()

    def penalty(self) -> Tensor:
        return torch.stack([part.penalty() for part in self.each()]).sum()

    def freeze(self, samples: int | None = None) -> Ensemble:
        """A copy in which every part's draws are fixed."""
        twin = copy.copy(self)
        twin._modules = {"net": nn.ModuleList([part.freeze(samples) for part in self.each()])}
        return twin

    @property
    def frozen(self) -> bool:
        return any(part.frozen for part in self.each())

    @property
    def samples(self) -> int:
        """K of every part."""
        return self.each()[0].samples

    @samples.setter
    def samples(self, samples: int) -> None:
        for part in self.each():
            part.samples = samples

    def member(self, index: int) -> nn.Module:
        if self.plain_members == 0:
            return self.each()[0].member(0)  # raises, with the reason
        left = index
        for part in self.each():
            if 0 <= left < part.plain_members:
                return part.member(left)
            left -= part.plain_members
        raise IndexError(f"there are members 0 to {self.plain_members - 1}, got {index}")

    @property
    def plain_members(self) -> int:
        return sum(part.plain_members for part in self.each())

    def fold(self) -> nn.Module:
        """The parts, each folded."""
        folded = [part.fold() for part in self.each()]
        if all(part.plain_members == 1 for part in self.each()):
            return Stack(folded, self.output).eval()
        return Chain(folded).eval()
