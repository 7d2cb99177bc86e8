"""Deep ensembles: M networks, trained side by side; and ensembles of any other method.

    p(y | x) = (1/M) Σ_m p_m(y | x)

Member 0 keeps the weights of the network; the others are drawn anew. With `of`, every member is an ensemble of that
spec, made from a network of its own: DeepEnsemble(5, of=Variance()) averages over 5 × 20 answers.

Members of a network whose weights are all in linear layers are stacked: a layer's weights are one tensor `[M, O, I]`, and all
members run, and are trained, by one batched matrix product a layer. Many small networks then cost little more than one. Each
trains as it would alone; convolutions gain nothing from it and stay networks of their own.

Lakshminarayanan et al., "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles", 2017.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core.affine import get_weight_and_bias as affine_parts
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.heads import OwnWeights
from ..core.initialization import redraw_weights
from ..core.module_copies import copy_module
from ..core.parts import Deep
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Subject
from ..core.target_distribution import TargetHead


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
    is_tuned_as_part: ClassVar[bool] = True

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

    def get_takes_apart(self) -> tuple[str, ...]:
        return () if self.of is None else self.of.get_takes_apart()

    def get_keeps(self) -> Keeps:
        return "member 0" if self.of is None or self.of.get_keeps() == "predictions" else self.of.get_keeps()

    def convert(self, subject: Subject) -> Ensemble:
        nets = [subject.net, *(redraw_weights(copy_module(subject.net)) for _ in range(self.members - 1))]
        obstacle = "" if self.stacked is False or self.of is not None else find_obstacle(subject, bool(self.stacked))
        if self.stacked and obstacle:
            raise ConversionError(f"stacked=True needs a network whose weights are all in linear layers: {obstacle}")
        if self.stacked is not False and self.of is None and not obstacle:
            return stack_members(subject, self, nets)
        parts = []
        for net in nets:
            own = subject.replace_network(net)
            parts.append(Ensemble(own, self, 1, {}) if self.of is None else self.of.convert(own))
        return Deep(subject, self, parts)


def find_obstacle(subject: Subject, asked: bool) -> str:
    """Why the members cannot be stacked, if they cannot. A module of the user's own may read its layers' weights, which a
    stacked layer has not: such a network is stacked only if that is asked for."""
    found = Subject(subject.net, order=subject.ran).layers((nn.Linear,))
    owned = {id(parameter) for layer in found.values() for parameter in layer.parameters()}
    for name, parameter in subject.net.named_parameters():
        if id(parameter) not in owned:
            return f"{name} is not in one that can be replaced"
    for name, _ in subject.net.named_buffers():
        return f"{name} is a buffer, which each member has for itself"
    foreign = [type(module).__name__ for module in subject.modules.values() if is_foreign(module)]
    return f"{foreign[0]} has a forward of its own" if foreign and not asked else ""


def is_foreign(module: nn.Module) -> bool:
    """Whether a module is neither torch's nor the core's, so that it may read the weights of its layers."""
    return not type(module).__module__.startswith("torch.") and not isinstance(module, TargetHead)


def stack_members(subject: Subject, spec: DeepEnsemble, nets: list[nn.Module]) -> Ensemble:
    replaced: dict[str, nn.Module] = {}
    for name in subject.layers((nn.Linear,)):
        weights, biases = zip(*(affine_parts(net.get_submodule(name)) for net in nets), strict=True)
        own = OwnWeights(
            subject.modules[name], stack_parameters(weights), None if biases[0] is None else stack_parameters(biases)
        )
        own.weights.requires_grad_(weights[0].requires_grad)
        if own.biases is not None:
            own.biases.requires_grad_(biases[0].requires_grad)
        replaced[name] = own
    return Ensemble(subject, spec, spec.members, replaced)


def stack_parameters(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.stack([parameter.detach() for parameter in parameters])
