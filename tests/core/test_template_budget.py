"""Budgets of parameters: the counts of the MixtureEnsembles paper, and what `describe()` says of them."""

import re
from functools import cache

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, ConversionError, Mixture
from pluribus.core.describe import count_parameters
from pluribus.core.surgery import Subject
from pluribus.methods.mixture import find_norms, plan_budget
from pluribus.models import wide_resnet
from tests.networks import ResidualCNN, words


@cache
def get_wide_resnet() -> Subject:
    return Subject(wide_resnet(28, 10, 100))


def describe(spec: Mixture, net: nn.Module | None = None) -> str:
    return words(pluribus.ensemble(net or ResidualCNN(), spec).describe())


# --- WRN-28-10 with 100 classes, as in the paper ----------------------------------------------------------------------


def test_the_wide_network_has_three_groups_of_seven_layers_and_105_coefficients_a_member():
    subject = get_wide_resnet()
    assert count_parameters(subject.net) == 36_536_884
    assert sum(count_parameters(norm) for norm in find_norms(subject).values()) == 17_952
    budget = plan_budget(Mixture(members=4, parameters=36_500_000), subject)
    assert not budget.blob
    assert [len(group) for group in budget.groups] == [7, 7, 7]
    assert [group.size for group in budget.groups] == [160**2 * 9, 320**2 * 9, 640**2 * 9]
    templates = sum(count * group.size for count, group in zip(budget.counts, budget.groups, strict=True))
    coefficients = budget.total(budget.counts) - budget.fixed - templates
    assert coefficients == 4 * 105
    assert budget.fixed == 36_536_884 + 3 * 17_952 - 7 * sum(group.size for group in budget.groups)


@pytest.mark.parametrize(("parameters", "each"), [(36.5e6, 6.98), (120e6, 24.2), (15e6, 2.5), (7e6, 0.88)])
def test_a_group_of_the_wide_network_has_the_share_of_templates_that_the_paper_implies(parameters, each):
    budget = plan_budget(Mixture(members=4, parameters=36_500_000), get_wide_resnet())
    budget.budget = int(parameters)
    digits = 1 if each in (24.2, 2.5) else 2
    assert [round(share, digits) for share in budget.compute_shares()] == [each] * 3


@pytest.mark.parametrize("parameters", [36_500_000, 120_000_000, 15_000_000, 0.4])
def test_the_budgets_of_the_wide_network_are_met_to_within_its_smallest_template(parameters):
    budget = plan_budget(Mixture(members=4, parameters=parameters), get_wide_resnet())
    asked = int(0.4 * 36_536_884) if parameters == 0.4 else parameters
    assert 0 <= asked - budget.total(budget.counts) < 160**2 * 9 + 4 * 21


def test_seven_million_are_too_few_for_two_templates_a_group_so_one_blob_serves_all_layers():
    subject = get_wide_resnet()
    budget = plan_budget(Mixture(members=4, parameters=7_000_000), subject)
    assert budget.blob
    assert budget.total(budget.counts) == 7_000_000
    with pytest.raises(ConversionError, match="at least") as caught:
        plan_budget(Mixture(members=4, parameters=7_000_000, blob=False), subject)
    least = int(re.search(r"at least ([\d,]+)", str(caught.value))[1].replace(",", ""))
    assert plan_budget(Mixture(members=4, parameters=least, blob=False), subject).counts == [2, 2, 2]
    with pytest.raises(ConversionError, match=f"at least {least:,}"):
        plan_budget(Mixture(members=4, parameters=least - 1, blob=False), subject)


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_a_description_names_banks_their_layers_and_templates_and_what_is_shared():
    ensemble = pluribus.ensemble(ResidualCNN(), Mixture(members=2, parameters=2.0))
    said = words(ensemble.describe())
    groups = [["blocks.0.conv1", "blocks.0.conv2"], ["blocks.1.conv2", "blocks.2.conv1", "blocks.2.conv2"]]
    for number, layers in enumerate(groups):
        bank = ensemble.banks[number]
        size = bank.templates[0].numel()
        assert f"bank {number}: {len(bank.templates)} templates of" in said
        assert f"= {size:,}, for {len(layers)} layers" in said
        for name in layers:
            mixed = " ".join(map(str, ensemble.net.get_submodule(name).where[0].tolist()))
            assert f"{name} mixes {mixed}" in said
    assert "shared by all members stem.0, blocks.1.conv1, blocks.1.shortcut, head" in said
    assert f"used {count_parameters(ensemble):,}" in said
    assert f"2 plain networks: {count_parameters(ensemble.fold()):,} parameters" in said


def test_disjoint_templates_and_a_blob_are_described_too():
    said = describe(Mixture(members=2, parameters=2.0, disjoint=True))
    assert re.search(r"blocks\.0\.conv1 mixes 0 2 4 in member 0, 1 3 5 in member 1", said)
    said = describe(Mixture(members=2, parameters=0.7))
    assert re.search(r"one blob of [\d,]+ numbers, for 9 layers: stem\.0 mixes those that begin at 0 216 432", said)
    assert "shared by all members nothing but the numbers" in said
    hidden = [nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh()]
    said = describe(Mixture(members=2, parameters=4.0, of=MIMO()), nn.Sequential(nn.Linear(5, 6), *hidden, nn.Linear(6, 3)))
    assert re.search(r"bank 0: \d+ templates of 6x6 = 36, for 2 layers \(Linear\): 1 mixes", said)


def test_parameters_that_groups_cannot_use_are_offered_to_layers_without_a_partner():
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, 3))
    said = describe(Mixture(members=2, parameters=4.0), net)
    assert "or per_layer=True, which gives 0, 5 banks of their own" in said
    assert "per_layer=True, which" not in describe(Mixture(members=2, parameters=9.0, per_layer=True), net)
    assert "could not use" in describe(Mixture(members=2, parameters=9.0, per_layer=True), net)
    one = describe(Mixture(members=2, parameters=4.0, per_layer=True), net)
    assert "for 1 layer (Linear)" in one


def test_templates_do_not_depend_on_where_the_network_is():
    with torch.device("meta"):
        hollow = nn.Sequential(*[nn.Linear(8, 8, bias=False) for _ in range(4)])
    assert plan_budget(Mixture(members=2, parameters=0.9), Subject(hollow)).counts == [3]
