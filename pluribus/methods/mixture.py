"""MixtureEnsembles: members whose weights are mixtures of templates that all members and layers of a shape share.

    θ_{j,i} = Σ_{l ∈ t_j} α_{j,i,l} T_l            layer j, member i, a subset t_j of its group's templates         (eq. 2)

Layers are grouped by type and shape. A group's share of the parameter budget is its share in the plain network; as many
templates as fit are its bank. Each layer mixes `templates` of them, dealt round-robin, (t·j + k) mod n, with coefficients of
each member's own. Biases and normalisation layers are each member's own. A layer whose shape is the only one of its kind
stays an ordinary layer that all members share, or has a bank of its own (`per_layer`, appendix A.1 of the paper). Where the
budget does not reach for that, or no two layers are alike, a single blob of numbers serves all layers: each takes its templates
from it one after the other, round and round.

With `of`, every member is an ensemble of that spec, with weights that are mixed in the same way: Mixture(2, of=MIMO(2)) are two
MIMO networks. What that spec converted (MIMO's first and last layer) every member has for itself.

What the paper leaves open, and what we do: coefficients are drawn semi-orthogonal over layers × templates (as in its
ancestors' code), each layer's then scaled to length one, so that it starts with the variance of a template; templates are
normal at the scale of the layers that they replace, and a blob's numbers at the root mean square of all of them; losses are
summed ("mean" by option); what flooring leaves of the budget goes to the groups with the largest remainders, so that it is met
to within one template, up to the most that the layers can mix. A group has at least two templates: with one,
members would differ in sign and scale only, and the scale is undone by the normalisation that follows.

The steps of SGD are those of a plain network, because gradients are scaled. Without that, a step would move the weights w of a
layer, whose coefficients have the length c, by −lr · c² · ∂L/∂w through its own templates, by −lr · T ⟨T, ∂L/∂w⟩ through the
coefficient of a template T, and by the gradients of the other members. So the gradient of w is divided by c² √M, that of the
coefficients by |T|² as well: c² is up to 30 where one blob serves layers of different scale, and |T|² about twice the number of
outputs; SGD diverged within four steps. For Adam, the scale of the weights must stand in the numbers: with numbers from N(0, 1)
and the scale (about 0.02) in the coefficients, a step moved w by 0.1 %, where it moves a plain network's by 1 to 5 %.

Which form is best was measured on a network with eight convolutions of one shape, at twice its parameters (4,000 rows of MNIST,
three seeds; results/ablations/mixture-forms.json). By SGD the calibrated NLL is 0.069 with common templates in a bank, 0.071
with disjoint ones, 0.078 with a blob; 0.106 if losses are averaged, which is a fourth of the rate; 0.072 with coefficients from
independent normal numbers, and 0.071 if each member begins with one template; 0.098 of one network. With AdamW no choice
differs by more than 0.009 from another, and one network has 0.189.

"MixtureEnsembles: Leveraging Parameter Sharing for Efficient Ensembles", 2021; Savarese & Maire, 2019; Plummer et al., 2020.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from ..core.affine import AFFINE, NORMS
from ..core.describe import Change, count_parameters
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.members import Converted, PerMember, name_layers
from ..core.parts import Deep
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Patterns, Subject, carry_hooks_to_converted, copy_with, is_within
from ..core.template_budget import BankUse, Budget, describe_banks, describe_budget
from ..core.templates import Mixed, MixedPart


@dataclass(frozen=True)
class Mixture(Spec):
    """Mix every member's weights from common templates, within a budget of `parameters`.

    `parameters` is a ratio to the network's own (a float, 1.0) or a count (an int). `disjoint` gives every member templates of
    its own, in groups with enough of them. `blob=None` uses the single blob where the budget calls for it; True and False force
    the choice. `per_layer` gives a layer without a partner of its shape a bank of its own, if the budget reaches for two
    templates of it. `of` makes every member an ensemble of that spec.
    """

    name: ClassVar[str] = "mixture"
    keeps: ClassVar[Keeps] = "other layers"
    size_option: ClassVar[str | None] = "members"
    nested_option: ClassVar[str | None] = "of"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"parameters": (1.0, 2.0, 4.0), "members": (2, 4)}

    members: int = 4
    parameters: float | int = 1.0
    templates: int = 5
    disjoint: bool = False
    blob: bool | None = None
    per_layer: bool = False
    loss: Literal["sum", "mean"] = "sum"
    include: Patterns = None
    exclude: Patterns = None
    of: Spec | None = None

    def check(self) -> None:
        require_count("members", self.members, 2, "one member is a network with shared layers")
        require_count("templates", self.templates, 2, "members that mix one template are equal up to scale")
        require_choice("loss", self.loss, ("sum", "mean"))
        if (
            isinstance(self.parameters, bool)
            or not isinstance(self.parameters, (int, float))
            or not 0 < self.parameters < math.inf
        ):
            raise ValueError(f"parameters must be a positive ratio (1.0) or count (36_500_000), got {self.parameters!r}")
        if isinstance(self.parameters, int) and self.parameters < 100:
            raise ValueError(f"parameters={self.parameters} is a count; for a ratio write {float(self.parameters)}")
        require_choice("disjoint", self.disjoint, (False, True))
        require_choice("blob", self.blob, (None, False, True))
        require_choice("per_layer", self.per_layer, (False, True))
        for option in ("disjoint", "per_layer"):
            if getattr(self, option) and self.blob:
                raise ValueError(f"{option}=True and blob=True exclude each other: one blob serves all members and layers")
        if self.of is not None and not isinstance(self.of, Spec):
            raise TypeError(f"of must be a spec, such as MIMO(members=2), or None, got {self.of!r}")
        if self.of is not None and self.of.nested_option:
            raise ValueError(f"of must be a method that is not made of others, got {self.of}")

    def convert(self, subject: Subject) -> Ensemble:
        if self.of is not None:
            return convert_parts(self, self.of, subject)
        budget, norms = plan_budget(self, subject), find_norms(subject)
        replaced: dict[str, nn.Module] = {
            name: PerMember([copy_with(norm, {}) for _ in range(self.members)]) for name, norm in norms.items()
        }
        filled = budget.fill()
        for use in filled:
            for name, coefficients, where in use.layers:
                replaced[name] = Mixed(subject.modules[name], use.bank, coefficients, where)
        weighted = [name for name, module in subject.modules.items() if any(True for _ in module.parameters(recurse=False))]
        shared = [name for name in weighted if not any(is_within(name, place) for place in replaced)]
        return MixtureEnsemble(subject, self, replaced, filled, budget, shared)


def plan_budget(spec: Mixture, subject: Subject) -> Budget:
    """Who gets how many templates. It counts, and needs no numbers: the network may be on the meta device."""
    base, norms = count_parameters(subject.net), find_norms(subject)
    layers = subject.select(AFFINE, spec.include, spec.exclude)
    return Budget(spec, base, base, layers, sum(count_parameters(norm) for norm in norms.values()))


def find_norms(subject: Subject) -> dict[str, nn.Module]:
    """The normalisation layers that have a state, of which every member has its own."""
    return {name: norm for name, norm in subject.layers(NORMS).items() if any(True for _ in norm.state_dict())}


def convert_parts(spec: Mixture, of: Spec, subject: Subject) -> Ensemble:
    """An ensemble `of` another spec for every member, of which the layers that it left plain are mixed.

    What is neither mixed nor converted nor a normalisation layer is the same tensor in all of them.
    """
    parts = [of.convert(subject) for _ in range(spec.members)]
    first = Subject(parts[0].net, order=subject.ran)
    converted = [name for name, module in parts[0].net.named_modules() if isinstance(module, Converted)]

    def is_plain(name: str) -> bool:
        return not any(is_within(name, place) for place in converted)

    layers = {name: layer for name, layer in first.select(AFFINE, spec.include, spec.exclude).items() if is_plain(name)}
    if not layers:
        raise ConversionError(f"{of} leaves no layer plain: there is nothing to mix")
    norms = {name: norm for name, norm in find_norms(first).items() if is_plain(name)}
    own = (*norms, *converted)
    shared = {name: tensor for name, tensor in parts[0].net.named_parameters() if not any(is_within(name, p) for p in own)}
    whole = count_parameters(parts[0].net)
    rest = whole - sum(tensor.numel() for tensor in shared.values())
    budget = Budget(spec, count_parameters(subject.net), whole, layers, rest)
    filled, replaced = budget.fill(), dict[str, list[MixedPart]]()
    for use in filled:
        for name, alpha, where in use.layers:
            layer, rows = use.group[name], [slice(index, index + 1) for index in range(spec.members)]
            replaced[name] = [
                MixedPart(layer, use.bank, alpha[row], where[row], members=spec.members).train(layer.training) for row in rows
            ]
    for index, part in enumerate(parts):
        memo: dict[int, Any] = {id(part.net.get_submodule(name)): new[index] for name, new in replaced.items()}
        for name, new in replaced.items():
            carry_hooks_to_converted(part.net.get_submodule(name), new[index], memo)
        part.net = copy_with(part.net, memo)
        name_layers(part.net)
        part.conversion.changes += [Change(name, str(use.group[name]), "MixedPart") for use in filled for name in use.group]
        for name in shared:
            owner, _, parameter = name.rpartition(".")
            if owner not in replaced:
                setattr(part.net.get_submodule(owner), parameter, parts[0].net.get_parameter(name))
    owners = dict.fromkeys(name.rpartition(".")[0] for name in shared)
    return MixtureOfParts(subject, spec, parts, filled, budget, [name for name in owners if name not in replaced])


class MixtureEnsemble(Ensemble):
    def __init__(
        self,
        subject: Subject,
        spec: Mixture,
        replaced: dict[str, nn.Module],
        filled: list[BankUse],
        budget: Budget,
        shared: list[str],
    ) -> None:
        super().__init__(subject, spec, spec.members, replaced)
        self.banks = nn.ModuleList(use.bank for use in filled)
        self.reduction = spec.loss
        self.conversion.details |= describe_banks(filled, shared)
        self.conversion.notes += describe_budget(budget)
        deployed = spec.members * count_parameters(subject.net)
        self.conversion.notes.append(f"deployed by fold() as {spec.members} plain networks: {deployed:,} parameters")


class MixtureOfParts(Deep):
    """Ensembles side by side, whose plain layers are mixed from common banks."""

    def __init__(
        self,
        subject: Subject,
        spec: Mixture,
        parts: list[Ensemble],
        filled: list[BankUse],
        budget: Budget,
        shared: list[str],
    ) -> None:
        super().__init__(subject, spec, parts)
        self.banks = nn.ModuleList(use.bank for use in filled)
        self.conversion.details |= describe_banks(filled, shared)
        self.conversion.notes += describe_budget(budget)

    def objective(self, outputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of the members' losses, or their mean."""
        assert isinstance(self.spec, Mixture)
        total = super().objective(outputs, *args, **kwargs)
        return total / self.spec.members if self.spec.loss == "mean" else total
