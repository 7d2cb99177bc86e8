"""A budget of parameters, shared out in whole templates, and what came of it in words.

A group of layers of one shape gets its share in the plain network, in whole templates of that shape. All parameters are counted
exactly: templates, coefficients, each member's own biases and normalisation, and what all members share.
"""

import itertools
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from .affine import get_weight_and_bias
from .errors import ConversionError
from .initialization import measure_scale
from .templates import Bank, Blob, Group, draw_coefficients


class TemplateSpec(Protocol):
    """What a spec says about its templates."""

    @property
    def members(self) -> int: ...
    @property
    def parameters(self) -> float | int: ...
    @property
    def templates(self) -> int: ...
    @property
    def disjoint(self) -> bool: ...
    @property
    def blob(self) -> bool | None: ...
    @property
    def per_layer(self) -> bool: ...


class BankUse(NamedTuple):
    """A bank, the group of layers that it serves, and of every layer its name, its coefficients and their templates."""

    bank: Bank | Blob
    group: Group
    layers: list[tuple[str, Tensor, Tensor]]


class Budget:
    """Who gets how many templates. Counts parameters exactly, so that the budget is kept."""

    def __init__(self, spec: TemplateSpec, base: int, whole: int, layers: dict[str, nn.Module], own: int) -> None:
        """`base` counts the parameters of the user's network, `whole` those of the one that is mixed; of these, `own` are each
        member's own, apart from the biases of the mixed `layers`."""
        self.spec = spec
        self.budget = int(base * spec.parameters) if isinstance(spec.parameters, float) else spec.parameters
        groups: dict[tuple[type, torch.Size], Group] = {}
        for name, layer in layers.items():
            key = type(layer), get_weight_and_bias(layer)[0].shape
            groups.setdefault(key, Group())[name] = layer
        alike = [group for group in groups.values() if len(group) > 1]
        alone = [group for group in groups.values() if len(group) == 1]
        if spec.per_layer:
            alike = self._add_single_layers(whole, own, alike, alone)
        self.alone = [name for group in alone for name in group]
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
        which normalisation undoes. Disjoint members have two in common where there are not enough for all."""
        if self.blob:
            return [next(size for size in itertools.count(self.spec.templates) if self._distinct(size))]
        return [2] * len(self.groups)

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
        return min(self.spec.templates, count // self.spec.members if self._is_disjoint(count) else count)

    def _is_disjoint(self, count: int) -> bool:
        """Whether members of a group with so many templates have none in common: there must be one for each."""
        return self.spec.disjoint and count >= self.spec.members

    def _most(self, group: Group) -> int:
        """More templates than this would never be used."""
        return self.spec.templates * len(group) * (self.spec.members if self.spec.disjoint else 1)

    def compute_shares(self) -> list[float]:
        """How many templates of each group its share of the budget is worth, before it is made whole."""
        left = self.budget - self.fixed - sum(self._coefficients(group, self._most(group)) for group in self.groups)
        return [left * group.weights / self.weights / group.size for group in self.groups]

    def _bank_sizes(self) -> list[int]:
        """Shares of the budget in whole templates. What flooring leaves goes to the largest remainders."""
        exact, least = self.compute_shares(), self.least()
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

    def fill(self) -> "list[BankUse]":
        """New banks, and which layers mix what of them."""
        kind = Blob if self.blob else Bank
        banks = zip(self.groups, self.counts, strict=True)
        return [BankUse(kind(count, group), group, self._assign(group, count)) for group, count in banks]

    def _assign(self, group: Group, count: int) -> list[tuple[str, Tensor, Tensor]]:
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
            elif self._is_disjoint(count):  # member i has the templates i, i + M, i + 2M, …
                own = [torch.arange(i, count, spec.members) for i in range(spec.members)]
                where = torch.stack([o[(each * j + torch.arange(each)) % len(o)] for o in own])
            else:
                where = ((each * j + torch.arange(each)) % count).expand(spec.members, each)
            start = measure_scale(get_weight_and_bias(layer)[0]) / group.scale if self.blob else 1.0
            result.append((name, alphas[:, j] * start, where))
        return result


def _plus(counts: list[int], index: int, step: int = 1) -> list[int]:
    return [count + step * (position == index) for position, count in enumerate(counts)]


def describe_budget(budget: Budget) -> list[str]:
    """What became of the budget, in sentences."""
    counts, spec = budget.counts, budget.spec
    what = f"one blob of {counts[0]:,}" if budget.blob else f"templates {' + '.join(map(str, counts))}"
    notes = [f"budget {budget.budget:,} parameters, used {budget.total(counts):,}: {what}"]
    if (unused := budget.count_unused()) > 0:
        cures = "mix more templates= a layer"
        if budget.alone and not budget.blob and not spec.per_layer:
            cures += f", or per_layer=True, which gives {', '.join(budget.alone)} banks of their own"
        notes.append(f"it could not use {unused:,} parameters: {cures}")
    return notes


def describe_banks(filled: list[BankUse], shared: list[str]) -> dict[str, list[str]]:
    """For `describe()`: every bank with its layers and the templates that these mix, and the layers that all members share."""
    lines = []
    for number, (bank, group, layers) in enumerate(filled):
        served = f"for {len(layers)} layer{'s' * (len(layers) > 1)}"
        if isinstance(bank, Blob):
            lines.append(f"one blob of {len(bank.numbers):,} numbers, {served}:")
        else:
            kind, shape = type(next(iter(group.values()))).__name__, "x".join(map(str, bank.templates.shape[1:]))
            size = bank.templates[0].numel()
            lines.append(f"bank {number}: {len(bank.templates)} templates of {shape} = {size:,}, {served} ({kind}):")
        lines += [f"  {name} mixes {describe_templates(where, isinstance(bank, Blob))}" for name, _, where in layers]
    plain = ", ".join(name or "(the network itself)" for name in shared)
    return {"templates": lines, "shared by all members": [plain or "nothing but the numbers of templates"]}


def describe_templates(where: Tensor, blob: bool) -> str:
    """Which templates members mix, `[M, t]`: once, if it is the same for all.

    >>> describe_templates(torch.tensor([[0, 1, 2], [0, 1, 2]]), blob=False)
    '0 1 2'
    >>> describe_templates(torch.tensor([[0, 2], [1, 3]]), blob=False)
    '0 2 in member 0, 1 3 in member 1'
    >>> describe_templates(torch.tensor([[0, 576]]), blob=True)
    'those that begin at 0 576'
    """
    rows = [" ".join(map(str, row)) for row in where.tolist()]
    if len(set(rows)) == 1:
        return f"those that begin at {rows[0]}" if blob else rows[0]
    return ", ".join(f"{row} in member {index}" for index, row in enumerate(rows))
