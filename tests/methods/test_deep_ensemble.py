import pytest
import torch
from torch import nn

import pluribus
from pluribus import MIMO, ConversionError, DeepEnsemble, Inner, Variance, VariationalDropout
from tests.networks import NestedMLP, ResidualCNN, Transformer, images, vectors


@pytest.mark.parametrize("network", [NestedMLP, ResidualCNN, Transformer])
def test_members_start_apart_at_the_scale_of_the_network(network):
    net = network()
    members = list(pluribus.ensemble(net, DeepEnsemble(3)).net)
    for name, parameter in net.named_parameters():
        copies = [dict(member.net.named_parameters())[name] for member in members]
        assert torch.equal(copies[0], parameter)
        if parameter.std() > 0:
            assert not torch.equal(copies[1], copies[2]), name
            assert copies[1].std().item() == pytest.approx(parameter.std().item(), rel=0.6), name
        else:
            assert torch.equal(copies[1], parameter), name  # a scale of one stays one


def test_a_network_of_constants_is_refused():
    layer = nn.Linear(3, 2)
    nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
    with pytest.raises(ConversionError, match="never part"):
        pluribus.ensemble(layer, DeepEnsemble(2))


def test_members_train_as_they_would_alone():
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(NestedMLP().double(), DeepEnsemble(2))
    alone = ensemble.member(1)
    x, y = vectors(8, torch.double), torch.arange(8) % 3
    together = torch.optim.SGD(ensemble.param_groups(), lr=0.1, momentum=0.9)
    single = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        for optimizer, loss in ((together, ensemble.loss(x, y)), (single, nn.functional.cross_entropy(alone(x), y))):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.testing.assert_close(ensemble.member(1)(x), alone(x), rtol=0, atol=1e-12)


def test_an_ensemble_of_ensembles_has_all_their_members():
    x, y = images(4), torch.arange(4) % 3
    of_mimo = pluribus.ensemble(ResidualCNN(), DeepEnsemble(2, of=MIMO(3)))
    views, targets = of_mimo.deal(x, y)
    assert targets.shape == (6, 4)
    assert of_mimo(views).shape == (6, 4, 3)
    of_variance = pluribus.ensemble(ResidualCNN(), DeepEnsemble(2, of=Variance(samples=5)))
    assert of_variance.train()(x).shape[0] == 2
    assert of_variance.eval()(x).shape[0] == 10
    nested = pluribus.ensemble(NestedMLP(), DeepEnsemble(2, of=DeepEnsemble(2))).eval()
    assert nested(vectors(3)).shape == (4, 3, 3)
    torch.testing.assert_close(nested.fold()(vectors(3)).shape, torch.Size((4, 3, 3)))


@pytest.mark.parametrize("method", pluribus.Spec.registry)
def test_any_other_method_can_be_ensembled(method):
    x, y = images(4), torch.arange(4) % 3
    part = pluribus.ensemble(ResidualCNN(), pluribus.Spec.registry[method]()).eval()
    ensemble = pluribus.ensemble(ResidualCNN(), DeepEnsemble(2, of=pluribus.Spec.registry[method]()))
    ensemble.train().loss(x, y, examples=100).backward()
    assert ensemble.eval()(x).shape == (2 * part.members, 4, 3)


def test_folding_an_ensemble_of_inner_ensembles_folds_each():
    net = ResidualCNN()
    described = pluribus.ensemble(net, DeepEnsemble(3, of=Inner(copies=4))).describe(images(2))
    assert described.deployed_parameters == 3 * described.base_parameters
    assert described.deployed_flops == 3 * described.base_flops


def test_the_penalty_is_the_sum_of_the_parts():
    ensemble = pluribus.ensemble(NestedMLP(), DeepEnsemble(2, of=VariationalDropout()))
    parts = [part.penalty() for part in ensemble.net]
    torch.testing.assert_close(ensemble.penalty(), sum(parts))
    with pytest.raises(ValueError, match="examples="):
        ensemble.loss(vectors(3), torch.arange(3))


def test_padding_stays_what_it_is_in_every_member():
    net = nn.Sequential(nn.Embedding(7, 4, padding_idx=2), nn.Flatten(), nn.Linear(12, 2))
    for part in pluribus.ensemble(net, DeepEnsemble(3)).net:
        assert part.net[0].weight[2].abs().max() == 0


def test_settings_reach_every_part_and_are_saved(tmp_path):
    ensemble = pluribus.ensemble(NestedMLP(), DeepEnsemble(2, of=VariationalDropout(samples=7))).eval()
    ensemble.samples = 3
    assert ensemble(vectors(2)).shape[0] == 6
    ensemble.net[1].answer = "mean"
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "x"), NestedMLP()).eval()
    assert again(vectors(2)).shape[0] == 4


def test_of_must_be_a_spec():
    with pytest.raises(TypeError, match="of must be a spec"):
        DeepEnsemble(of=Inner)


def test_stacked_members_answer_and_train_as_networks_of_their_own():
    """The same starting weights, drawn from the same seed; ten steps of momentum and decay; every member equal to rounding."""
    x, y = torch.randn(16, 5, dtype=torch.double), torch.arange(16) % 3
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8, bias=False), nn.Tanh(), nn.Linear(8, 3)).double()
    found = []
    for stacked in (None, False):
        torch.manual_seed(0)
        ensemble = pluribus.ensemble(net, DeepEnsemble(4, stacked=stacked))
        optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.1, momentum=0.9, weight_decay=1e-2)
        for _ in range(10):
            optimizer.zero_grad()
            ensemble.loss(x, y).backward()
            optimizer.step()
        found.append(ensemble.eval())
    stacked, apart = found
    assert len(list(stacked.parameters())) == 5, "one tensor a layer for all members"
    torch.testing.assert_close(stacked(x), apart(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(stacked.fold()(x), apart.fold()(x), rtol=0, atol=1e-12)
    for index in range(4):
        torch.testing.assert_close(stacked.member(index)(x), apart.member(index)(x), rtol=0, atol=1e-12)


def test_only_networks_whose_weights_are_all_in_linear_layers_are_stacked():
    assert pluribus.ensemble(NestedMLP(), DeepEnsemble(2)).net.__class__ is nn.ModuleList, (
        "a forward of its own may read weights"
    )
    assert pluribus.ensemble(NestedMLP(), DeepEnsemble(2, stacked=True)).net.__class__ is NestedMLP
    with pytest.raises(ConversionError, match="all in linear layers"):
        pluribus.ensemble(ResidualCNN(), DeepEnsemble(2, stacked=True))
    with pytest.raises(ValueError, match="plain networks"):
        DeepEnsemble(2, of=Inner(), stacked=True)


def test_a_frozen_layer_stays_frozen_when_stacked():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    net[0].weight.requires_grad_(False)
    ensemble = pluribus.ensemble(net, DeepEnsemble(2))
    assert not ensemble.net[0].weights.requires_grad
    assert ensemble.net[0].biases.requires_grad
    assert torch.equal(ensemble.net[0].weights[1], net[0].weight), "and is the same in every member"
