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
