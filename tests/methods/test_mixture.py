import json
from pathlib import Path

import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, ConversionError, DeepEnsemble, MCDropout, Mixture
from pluribus.core.templates import Bank, Mixed, draw_coefficients
from tests.networks import DenseCNN, NestedMLP, ResidualCNN, Transformer, images, words

NETS = {"mlp": NestedMLP, "residual": ResidualCNN, "dense": DenseCNN, "transformer": Transformer}


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("ratio", [1.7, 2.5, 4.0])
@pytest.mark.parametrize("name", NETS)
def test_budgets_are_met_to_within_one_template(name, ratio, disjoint):
    net = NETS[name]()
    budget = int(ratio * count(net))
    try:
        ensemble = pluribus.ensemble(net, Mixture(members=2, parameters=budget, disjoint=disjoint))
    except ConversionError:
        pytest.skip("this network needs more")
    used = count(ensemble)
    assert used <= budget
    if ensemble_is_full(ensemble, disjoint):
        assert any("could not use" in note for note in ensemble.conversion.notes)
        return
    blob = not isinstance(ensemble.banks[0], Bank)
    smallest = 1 if blob else min(bank.templates[0].numel() for bank in ensemble.banks)
    # a template that is added may bring one more coefficient for each member and layer
    coefficients = 2 * sum(isinstance(m, Mixed) for m in ensemble.modules())
    assert budget - used < smallest + coefficients
    assert f"used {used:,}" in words(ensemble.describe())
    assert ensemble.describe().parameters == used


def ensemble_is_full(ensemble, disjoint: bool) -> bool:
    """Every template that could be used is there."""
    if not isinstance(ensemble.banks[0], Bank):
        sizes = [m.affine.template.weight.numel() for m in ensemble.modules() if isinstance(m, Mixed)]
        return len(ensemble.banks[0].numbers) == 5 * sum(sizes)
    layers = [m for m in ensemble.modules() if isinstance(m, Mixed)]
    most = [5 * sum(m._bank[0] is bank for m in layers) * (2 if disjoint else 1) for bank in ensemble.banks]
    return all(len(bank.templates) >= n for bank, n in zip(ensemble.banks, most, strict=True))


def test_a_ratio_and_a_count_mean_the_same():
    net = ResidualCNN()
    by_ratio = pluribus.ensemble(net, Mixture(parameters=2.0))
    by_count = pluribus.ensemble(net, Mixture(parameters=2 * count(net)))
    assert count(by_ratio) == count(by_count)
    with pytest.raises(ValueError, match=r"write 2\.0"):
        Mixture(parameters=2)


def test_layers_are_grouped_by_type_and_shape_and_single_ones_are_shared():
    ensemble = pluribus.ensemble(ResidualCNN(), Mixture(members=2, parameters=2.0))
    groups: dict[int, list[str]] = {}
    for name, module in ensemble.net.named_modules():
        if isinstance(module, Mixed):
            groups.setdefault(id(module._bank[0]), []).append(name)
    assert sorted(groups.values()) == [
        ["blocks.0.conv1", "blocks.0.conv2"],
        ["blocks.1.conv2", "blocks.2.conv1", "blocks.2.conv2"],
    ]
    assert type(ensemble.net.stem[0]) is nn.Conv2d
    assert type(ensemble.net.head) is nn.Linear
    assert type(ensemble.net.blocks[1].conv1) is nn.Conv2d


def test_templates_are_dealt_round_robin():
    net = nn.Sequential(*[nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(6)], nn.Flatten(), nn.Linear(64, 2))
    ensemble = pluribus.ensemble(net, Mixture(members=2, templates=2, parameters=int(count(net) - 144 + 2 * 2 * 6)))
    assert len(ensemble.banks[0].templates) == 5
    where = [module.where[0].tolist() for module in ensemble.net if isinstance(module, Mixed)]
    assert where == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 1]]  # (t·j + k) mod n
    assert all(torch.equal(module.where[0], module.where[1]) for module in ensemble.net if isinstance(module, Mixed))


def test_disjoint_members_have_no_template_in_common():
    ensemble = pluribus.ensemble(ResidualCNN(), Mixture(members=3, parameters=4.0, disjoint=True))
    for bank in ensemble.banks:
        layers = [m for m in ensemble.modules() if isinstance(m, Mixed) and m._bank[0] is bank]
        used = [set(torch.cat([layer.where[i] for layer in layers]).tolist()) for i in range(3)]
        assert not used[0] & used[1]
        assert not used[0] & used[2]
        assert not used[1] & used[2]
        assert used[0] | used[1] | used[2] == set(range(len(bank.templates)))


def test_disjoint_members_use_templates_again_where_there_are_fewer_than_members():
    net = nn.Sequential(*[nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(3)], nn.Flatten(), nn.Linear(64, 2))
    ensemble = pluribus.ensemble(net, Mixture(members=4, parameters=int(count(net) + 4 * 3 * 3), disjoint=True))
    assert len(ensemble.banks[0].templates) == 3
    layers = [module for module in ensemble.net if isinstance(module, Mixed)]
    assert all(sorted(where) == [0, 1, 2] for layer in layers for where in layer.where.tolist())
    weights = torch.stack([layers[0].coefficients[member] for member in range(4)])
    assert torch.pdist(weights).min() > 0.01


def test_a_weight_is_the_mixture_of_its_templates():
    ensemble = pluribus.ensemble(ResidualCNN().double(), Mixture(members=2, parameters=2.0))
    layer = ensemble.net.blocks[2].conv1
    templates = layer._bank[0].templates
    for member in range(2):
        terms = zip(layer.coefficients[member], layer.where[member], strict=True)
        expected = sum(alpha * templates[index] for alpha, index in terms)  # eq. 2
        torch.testing.assert_close(layer.to_plain(member).weight, expected.detach())


def test_members_have_their_own_normalisation():
    ensemble = pluribus.ensemble(ResidualCNN(), Mixture(members=2, parameters=2.0)).train()
    ensemble.loss(images(8), torch.arange(8) % 3)
    norms = ensemble.net.blocks[0].bn1.copies
    assert not torch.equal(norms[0].running_mean, norms[1].running_mean)


def test_low_budgets_use_one_blob_and_meet_it():
    net = nn.Sequential(*[nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)], nn.Flatten(), nn.Linear(128, 2))
    budget = count(net) // 3
    ensemble = pluribus.ensemble(net, Mixture(members=2, parameters=budget))
    assert budget - 5 < count(ensemble) <= budget
    assert "one blob" in words(ensemble.describe())
    assert all(isinstance(ensemble.net[i], Mixed) for i in (0, 1, 2, 3, 5))
    layer, numbers = ensemble.net[3], ensemble.banks[0].numbers
    size = layer.affine.template.weight.numel()
    where = layer.where[0].tolist()
    expected = sum(
        a * numbers[(start + torch.arange(size)) % len(numbers)] for a, start in zip(layer.coefficients[1], where, strict=True)
    )
    torch.testing.assert_close(layer.to_plain(1).weight.flatten(), expected.detach())
    starts = [s for m in ensemble.net if isinstance(m, Mixed) for s in m.where[0].tolist()]
    sizes = [m.affine.template.weight.numel() for m in ensemble.net if isinstance(m, Mixed) for _ in range(5)]
    for here, step, after in zip(starts, sizes, starts[1:], strict=False):
        assert after == (here + step) % len(numbers)  # one after the other, round and round


def test_a_blob_never_gives_a_layer_the_same_template_twice():
    net = nn.Sequential(nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False))
    ensemble = pluribus.ensemble(net, Mixture(members=2, parameters=128 + 2 * 2 * 5, blob=True))
    assert len(ensemble.banks[0].numbers) < 128  # 128 divides 1024: all templates would begin at the same place
    assert all(len(set(layer.where[0].tolist())) == 5 for layer in ensemble.net)


def test_members_that_mix_one_template_would_be_equal_up_to_scale_and_do_not_occur():
    """Normalisation undoes the scale, so two of four such members would be the same network for ever."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)),
    )
    for seed in range(10):
        torch.manual_seed(seed)
        answers = pluribus.ensemble(net, Mixture(members=4)).train()(torch.randn(16, 3, 9, 9))
        gaps = [(answers[i] - answers[j]).abs().max() for i in range(4) for j in range(i)]
        assert min(gaps) > 0.02 * answers.abs().max()
    with pytest.raises(ValueError, match="equal up to scale"):
        Mixture(templates=1)


def test_an_impossible_budget_is_refused_with_the_least_possible():
    net = ResidualCNN()
    with pytest.raises(ConversionError, match=r"needs at least [\d,]+") as caught:
        pluribus.ensemble(net, Mixture(members=4, parameters=0.1))
    least = int(str(caught.value).rsplit("least ", 1)[1].replace(",", ""))
    assert count(pluribus.ensemble(net, Mixture(members=4, parameters=least))) == least


def test_coefficients_are_not_decayed_and_templates_are():
    ensemble = pluribus.ensemble(ResidualCNN(), Mixture(members=2, parameters=2.0))
    decayed, spared = ensemble.param_groups()
    coefficients = {id(m.coefficients) for m in ensemble.modules() if isinstance(m, Mixed)}
    assert {id(p) for p in spared["params"]} == coefficients
    assert {id(bank.templates) for bank in ensemble.banks} <= {id(p) for p in decayed["params"]}


@pytest.mark.parametrize(("layers", "templates"), [(7, 5), (3, 5), (5, 5), (1, 4), (6, 2)])
def test_coefficients_start_with_rows_of_length_one_and_orthogonal_where_they_can_be(layers, templates):
    matrix = draw_coefficients(layers, templates).double()
    torch.testing.assert_close(matrix.square().sum(1), torch.ones(layers, dtype=torch.double), rtol=0, atol=1e-5)
    if layers <= templates:
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(layers, dtype=torch.double), rtol=0, atol=1e-5)


def test_members_start_at_the_scale_of_the_network():
    net = nn.Sequential(*[nn.Linear(200, 200) for _ in range(6)])
    for spec in (Mixture(parameters=1.2), Mixture(parameters=0.4)):
        member = pluribus.ensemble(net, spec).member(1)
        for mine, theirs in zip(member, net, strict=True):
            assert mine.weight.std().item() == pytest.approx(theirs.weight.std().item(), rel=0.05)


def test_losses_are_summed_or_averaged():
    torch.manual_seed(0)
    summed = pluribus.ensemble(ResidualCNN(), Mixture(members=3, parameters=2.0)).eval()
    x, y = images(4), torch.arange(4) % 3
    each = [nn.functional.cross_entropy(output, y) for output in summed(x)]
    torch.testing.assert_close(summed.loss(x, y), sum(each))
    summed.reduction = "mean"
    torch.testing.assert_close(summed.loss(x, y), sum(each) / 3)


# --- per layer --------------------------------------------------------------------------------------------------------


def test_a_layer_without_a_partner_gets_a_bank_of_its_own_if_the_budget_allows():
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, 3))
    plain = pluribus.ensemble(net, Mixture(members=2, parameters=4.0))
    assert [name for name, layer in plain.net.named_modules() if isinstance(layer, Mixed)] == ["2", "4"]
    assert isinstance(plain.net[0], nn.Linear)
    ensemble = pluribus.ensemble(net, Mixture(members=2, parameters=4.0, per_layer=True))
    assert [name for name, layer in ensemble.net.named_modules() if isinstance(layer, Mixed)] == ["0", "2", "4", "5"]
    assert sorted(tuple(bank.templates.shape[1:]) for bank in ensemble.banks) == [(3, 5), (5, 5), (5, 6)]
    assert all(len(bank.templates) >= 2 for bank in ensemble.banks)
    assert count(ensemble) <= 4 * count(net)
    few = pluribus.ensemble(net, Mixture(members=2, parameters=1.6, per_layer=True))
    mixed = [name for name, layer in few.net.named_modules() if isinstance(layer, Mixed)]
    assert {"2", "4"} <= set(mixed) < {"0", "2", "4", "5"}, "the smallest first, while two templates fit"
    assert count(few) <= 1.6 * count(net)


def test_a_bank_of_a_layer_mixes_what_it_says():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).double()
    ensemble = pluribus.ensemble(net, Mixture(members=3, parameters=5.0, per_layer=True)).eval()
    assert ensemble.banks[0].templates.dim() == 3, "banks, no blob"
    x, answers = torch.randn(7, 4, dtype=torch.double), []
    for member in range(3):
        h = x
        for place in ("0", "2"):
            layer = ensemble.net.get_submodule(place)
            templates = layer._bank[0].templates[layer.where[member]]
            weight = torch.einsum("t,toi->oi", layer.coefficients[member], templates)
            h = h @ weight.T + layer.biases[member]
            h = h.relu() if place == "0" else h
        answers.append(h)
    torch.testing.assert_close(ensemble(x), torch.stack(answers), rtol=0, atol=1e-12)


def test_per_layer_and_blob_exclude_each_other():
    with pytest.raises(ValueError, match="per_layer=True and blob=True"):
        Mixture(per_layer=True, blob=True)


# --- of another method ------------------------------------------------------------------------------------------------


BUDGETS = [{"parameters": 4.0}, {"parameters": 3.0, "blob": True}, {"parameters": 5.0, "per_layer": True}]


@pytest.mark.parametrize("options", BUDGETS)
def test_a_mixture_of_mimo_is_mimo_with_mixed_weights(options):
    torch.manual_seed(0)
    hidden = [nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh()]
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), *hidden, nn.Linear(6, 3)).double()
    ensemble = pluribus.ensemble(net, Mixture(members=2, of=MIMO(members=3), **options))
    assert count(ensemble) <= options["parameters"] * count(net)
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    views = torch.randn(3, 4, 5, dtype=torch.double)
    parts = list(ensemble.net)
    for part in parts:
        merge, heads = part.net[0], part.net[6]
        h = sum(views[m] @ merge.weights[m].T for m in range(3)) + merge.offset
        for place in (2, 4):
            layer = part.net[place]
            h = h.tanh() @ layer.to_plain(0).weight.T + layer.biases[0]
        expected = torch.stack([h.tanh() @ heads.weights[m].T + heads.biases[m] for m in range(3)])
        torch.testing.assert_close(part(pluribus.core.pytrees.Views(views)), expected, rtol=0, atol=1e-12)
    weights = [part.net[2].to_plain(0).weight for part in parts]
    assert not torch.allclose(*weights)
    bank = ensemble.banks[0]
    numbers = bank.numbers if options.get("blob") else bank.templates
    loss = ensemble.loss(torch.randn(8, 5, dtype=torch.double), torch.randint(3, (8,)))
    loss.backward()
    assert numbers.grad.abs().sum() > 0


def test_what_a_mixture_of_another_method_shares_is_one_tensor():
    ensemble = pluribus.ensemble(ResidualCNN(), Mixture(members=2, parameters=2.5, of=MCDropout(samples=2, include="head")))
    one, two = list(ensemble.net)
    tied = {name for name, parameter in one.net.named_parameters() if two.net.get_parameter(name) is parameter}
    assert tied
    assert not any("bn" in name or "coefficients" in name or name.startswith("head") for name in tied)
    shared = sum(one.net.get_parameter(name).numel() for name in tied)
    assert count(ensemble) == count(one) + count(two) - shared + count(ensemble.banks)


def test_a_mixture_of_a_mixture_is_refused():
    for part in (Mixture(), DeepEnsemble()):
        with pytest.raises(ValueError, match="not made of others"):
            Mixture(of=part)
    with pytest.raises(TypeError, match="of must be a spec"):
        Mixture(of="mimo")


def test_the_defaults_are_those_that_the_recorded_forms_leave():
    """Another choice must be better with both optimisers, and with each seed on their average (results/ablations.py)."""
    place = Path(__file__).parents[2] / "results" / "ablations" / "mixture-forms.json"
    found = {}
    for one in json.loads(place.read_text())["results"]:
        facts = one["facts"]
        key = (facts.get("form"), facts.get("loss"), facts.get("coefficients"))
        found.setdefault(key, {})[facts["optimizer"], one["seed"]] = one["calibrated_nll"]
    default = found["common", "sum", None]
    assert (Mixture().disjoint, Mixture().blob, Mixture().loss) == (False, None, "sum")
    for key in (("disjoint", "sum", None), ("blob", "sum", None), ("common", "mean", None), ("common", "sum", "normal")):
        gains = {cell: default[cell] - found[key][cell] for cell in default}
        by_optimizer = [sum(gains[each, seed] for seed in range(3)) for each in ("sgd", "adamw")]
        by_seed = [sum(gains[each, seed] for each in ("sgd", "adamw")) for seed in range(3)]
        assert not (min(by_optimizer) > 0 and min(by_seed) > 0), key
