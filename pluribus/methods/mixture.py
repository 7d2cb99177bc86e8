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
to within one template, up to the most that the layers can mix. A group has at least two templates (M if disjoint): with one,
members would differ in sign and scale only, and the scale is undone by the normalisation that follows.

The steps of SGD are those of a plain network, because gradients are scaled. Without that, a step would move the weights w of a
layer, whose coefficients have the length c, by −lr · c² · ∂L/∂w through its own templates, by −lr · T ⟨T, ∂L/∂w⟩ through the
coefficient of a template T, and by the gradients of the other members. So the gradient of w is divided by c² √M, that of the
coefficients by |T|² as well: c² is up to 30 where one blob serves layers of different scale, and |T|² about twice the number of
outputs; SGD diverged within four steps. For Adam, the scale of the weights must stand in the numbers: with numbers from N(0, 1)
and the scale (about 0.02) in the coefficients, a step moved w by 0.1 %, where it moves a plain network's by 1 to 5 %.

"MixtureEnsembles: Leveraging Parameter Sharing for Efficient Ensembles", 2021; Savarese & Maire, 2019; Plummer et al., 2020.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, NORMS, get_weight_and_bias
from ..core.describe import Change, count_parameters
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.initialization import measure_scale
from ..core.members import Converted, PerMember, name_layers
from ..core.parts import Deep
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Patterns, Subject, carry_hooks_to_converted, copy_with, is_within
from ..core.templates import Bank, Blob, Group, Mixed, MixedPart, draw_coefficients


@dataclass(frozen=True)
class Mixture(Spec):
    """Mix every member's weights from common templates, within a budget of `parameters`.

    `parameters` is a ratio to the network's own (a float, 1.0) or a count (an int). `disjoint` gives every member templates of
    its own. `blob=None` uses the single blob where the budget calls for it; True and False force the choice. `per_layer` gives
    a layer without a partner of its shape a bank of its own, if the budget reaches for two templates of it. `of` makes every
    member an ensemble of that spec.
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
        layers = subject.select(AFFINE, self.include, self.exclude)
        norms = find_norms(subject)
        own = sum(count_parameters(norm) for norm in norms.values())
        base = count_parameters(subject.net)
        plan = Plan(self, base, base, layers, own)
        replaced: dict[str, nn.Module] = {
            name: PerMember([copy_with(norm, {}) for _ in range(self.members)]) for name, norm in norms.items()
        }
        banks = nn.ModuleList()
        for group, count in plan.banks():
            bank = Blob(count, group) if plan.blob else Bank(count, group)
            banks.append(bank)
            for name, coefficients, where in plan.assign(group, count):
                replaced[name] = Mixed(subject.modules[name], bank, coefficients, where)
        return MixtureEnsemble(subject, self, replaced, banks, plan)


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
    plan = Plan(spec, count_parameters(subject.net), whole, layers, whole - sum(tensor.numel() for tensor in shared.values()))
    banks, replaced = nn.ModuleList(), dict[str, list[MixedPart]]()
    for group, count in plan.banks():
        bank = Blob(count, group) if plan.blob else Bank(count, group)
        banks.append(bank)
        for name, alpha, where in plan.assign(group, count):
            rows = [(alpha[index : index + 1], where[index : index + 1]) for index in range(spec.members)]
            replaced[name] = [
                MixedPart(group[name], bank, *row, members=spec.members).train(group[name].training) for row in rows
            ]
    for index, part in enumerate(parts):
        memo: dict[int, Any] = {id(part.net.get_submodule(name)): new[index] for name, new in replaced.items()}
        for name, new in replaced.items():
            carry_hooks_to_converted(part.net.get_submodule(name), new[index], memo)
        part.net = copy_with(part.net, memo)
        name_layers(part.net)
        part.conversion.changes += [Change(name, str(group[name]), "MixedPart") for group in plan.groups for name in group]
        for name in shared:
            owner, _, parameter = name.rpartition(".")
            if owner not in replaced:
                setattr(part.net.get_submodule(owner), parameter, parts[0].net.get_parameter(name))
    return MixtureOfParts(subject, spec, parts, banks, plan)


class Plan:
    """Who gets how many templates. Counts parameters exactly, so that the budget is kept."""

    def __init__(self, spec: Mixture, base: int, whole: int, layers: dict[str, nn.Module], own: int) -> None:
        """`base` counts the parameters of the user's network, `whole` those of the one that is mixed; of these, `own` are each
        member's own, apart from the biases of the mixed `layers`."""
        self.spec = spec
        self.budget = int(base * spec.parameters) if isinstance(spec.parameters, float) else spec.parameters
        groups: dict[tuple[type, torch.Size], Group] = {}
        for name, layer in layers.items():
            key = type(layer), get_weight_and_bias(layer)[0].shape
            groups.setdefault(key, Group())[name] = layer
        alike = [group for group in groups.values() if len(group) > 1]
        if spec.per_layer:
            alike = self._add_single_layers(whole, own, alike, [group for group in groups.values() if len(group) == 1])
        self.blob = bool(spec.blob) or (spec.blob is None and not spec.disjoint and not alike)
        self._share_out(whole, own, [Group(layers)] if self.blob else alike)
        if self.total(self.least()) > self.budget and not self.blob and spec.blob is None and not spec.disjoint:
            self.blob = True
            self._share_out(whole, own, [Group(layers)])
        least = self.total(self.least())
        if least > self.budget:
            raise ConversionError(
                f"a budget of {self.budget:,} parameters is too small: with {spec.members} members this network needs "
                f"at least {least:,}"
            )
        self.counts = [self._blob_size()] if self.blob else self._bank_sizes()

    def _add_single_layers(self, whole: int, own: int, alike: list[Group], alone: list[Group]) -> list[Group]:
        """The groups, with layers of a shape of their own added, the smallest first, while each can have its templates."""
        self.blob = False
        for group in sorted(alone, key=lambda one: one.size):
            self._share_out(whole, own, [*alike, group])
            if self.total(self.least()) > self.budget:
                break
            alike = [*alike, group]
        return alike

    def _share_out(self, base: int, own: int, groups: list[Group]) -> None:
        """What is no template and no coefficient: each member's norms and biases, and all that the members share."""
        if not groups:
            raise ConversionError("no two layers have the same type and shape, so there is nothing to share: use blob=True")
        self.groups = groups
        self.weights = sum(group.weights for group in groups)
        biases = sum(group.biases for group in groups)
        self.fixed = base + (own + biases) * (self.spec.members - 1) - self.weights

    def least(self) -> list[int]:
        """The fewest templates with which members can part: one template for two of them would make them equal up to scale,
        which normalisation undoes."""
        if self.blob:
            return [next(size for size in itertools.count(self.spec.templates) if self._distinct(size))]
        return [self.spec.members if self.spec.disjoint else 2] * len(self.groups)

    def total(self, counts: list[int]) -> int:
        """All parameters of the ensemble."""
        if self.blob:
            return self.fixed + counts[0] + self.spec.members * self.spec.templates * len(self.groups[0])
        banks = zip(self.groups, counts, strict=True)
        return self.fixed + sum(count * group.size + self._coefficients(group, count) for group, count in banks)

    def _coefficients(self, group: Group, count: int) -> int:
        return self.spec.members * len(group) * self._count_mixed(count)

    def _count_mixed(self, count: int) -> int:
        """How many templates a layer mixes."""
        return min(self.spec.templates, count // self.spec.members if self.spec.disjoint else count)

    def _most(self, group: Group) -> int:
        """More templates than this would never be used."""
        return self.spec.templates * len(group) * (self.spec.members if self.spec.disjoint else 1)

    def _bank_sizes(self) -> list[int]:
        """Shares of the budget in whole templates. What flooring leaves goes to the largest remainders."""
        left = self.budget - self.fixed - sum(self._coefficients(g, self._most(g)) for g in self.groups)
        exact = [left * group.weights / self.weights / group.size for group in self.groups]
        least = self.least()
        counts = [max(n, min(int(e), self._most(g))) for e, g, n in zip(exact, self.groups, least, strict=True)]
        while self.total(counts) > self.budget:  # some group got its least at the cost of the others
            fewer = [index for index, count in enumerate(counts) if count > least[index]]
            counts = _plus(counts, max(fewer, key=lambda index: counts[index] - exact[index]), -1)
        while True:
            more = [
                index
                for index, group in enumerate(self.groups)
                if counts[index] < self._most(group) and self.total(_plus(counts, index)) <= self.budget
            ]
            if not more:
                return counts
            counts = _plus(counts, max(more, key=lambda index: exact[index] - counts[index]))

    def _blob_size(self) -> int:
        sizes = range(min(self.spec.templates * self.weights, self.budget - self.total([0])), 0, -1)
        return next(size for size in sizes if self._distinct(size))

    def _distinct(self, size: int) -> bool:
        """Whether a layer's templates begin at different places of a blob of this size: else they would be the same."""
        layers = {get_weight_and_bias(layer)[0].numel() for layer in self.groups[0].values()}
        return all(layer * steps % size for layer in layers for steps in range(1, self.spec.templates))

    def count_unused(self) -> int:
        """What of the budget is left because no layer would mix more templates."""
        full = [self.spec.templates * self.weights] if self.blob else [self._most(group) for group in self.groups]
        return self.budget - self.total(self.counts) if self.counts == full else 0

    def banks(self) -> list[tuple[Group, int]]:
        return list(zip(self.groups, self.counts, strict=True))

    def assign(self, group: Group, count: int) -> list[tuple[str, Tensor, Tensor]]:
        """For every layer: its name, coefficients `[M, t]`, and which templates (or where in the blob) `[M, t]`."""
        spec = self.spec
        each = spec.templates if self.blob else self._count_mixed(count)
        like, _ = get_weight_and_bias(next(iter(group.values())))
        alphas = torch.stack([draw_coefficients(len(group), each) for _ in range(spec.members)]).to(like)
        result, pointer = [], 0
        for j, (name, layer) in enumerate(group.items()):
            if self.blob:
                size = get_weight_and_bias(layer)[0].numel()
                where = torch.tensor([(pointer + k * size) % count for k in range(each)]).expand(spec.members, each)
                pointer += each * size
            elif spec.disjoint:  # member i has the templates i, i + M, i + 2M, …
                own = [torch.arange(i, count, spec.members) for i in range(spec.members)]
                where = torch.stack([o[(each * j + torch.arange(each)) % len(o)] for o in own])
            else:
                where = ((each * j + torch.arange(each)) % count).expand(spec.members, each)
            start = measure_scale(get_weight_and_bias(layer)[0]) / group.scale if self.blob else 1.0
            result.append((name, alphas[:, j] * start, where))
        return result


def _plus(counts: list[int], index: int, step: int = 1) -> list[int]:
    return [count + step * (position == index) for position, count in enumerate(counts)]


class MixtureEnsemble(Ensemble):
    def __init__(
        self,
        subject: Subject,
        spec: Mixture,
        replaced: dict[str, nn.Module],
        banks: nn.ModuleList,
        plan: Plan,
    ) -> None:
        super().__init__(subject, spec, spec.members, replaced)
        self.banks = banks
        self.reduction = spec.loss
        self.conversion.notes += describe_budget(plan)


class MixtureOfParts(Deep):
    """Ensembles side by side, whose plain layers are mixed from common banks."""

    def __init__(self, subject: Subject, spec: Mixture, parts: list[Ensemble], banks: nn.ModuleList, plan: Plan) -> None:
        super().__init__(subject, spec, parts)
        self.banks = banks
        self.conversion.notes += describe_budget(plan)

    def objective(self, outputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The sum of the members' losses, or their mean."""
        assert isinstance(self.spec, Mixture)
        total = super().objective(outputs, *args, **kwargs)
        return total / self.spec.members if self.spec.loss == "mean" else total


def describe_budget(plan: Plan) -> list[str]:
    """What became of the budget, in sentences."""
    total = plan.total(plan.counts)
    what = f"one blob of {plan.counts[0]:,}" if plan.blob else f"templates {' + '.join(map(str, plan.counts))}"
    notes = [f"budget {plan.budget:,} parameters, used {total:,}: {what}"]
    if plan.count_unused() > 0:
        notes.append(f"it could not use {plan.count_unused():,} parameters: mix more templates= a layer")
    return notes
