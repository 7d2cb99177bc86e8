"""One network: plain, or with dropout before its last layer in training."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import Single
from tests.networks import NestedMLP, vectors


def test_dropout_stands_before_the_last_layer_and_nowhere_else():
    net = NestedMLP().double()
    ensemble = pluribus.ensemble(net, Single(dropout=0.4)).train()
    x = vectors(6, torch.double)
    torch.manual_seed(3)
    ours = ensemble(x)[0]
    features = []
    net.head.register_forward_pre_hook(lambda module, args: features.append(args[0]))
    net(x)
    torch.manual_seed(3)
    torch.testing.assert_close(ours, net.head(F.dropout(features[0], 0.4, True)), rtol=0, atol=0)


def test_it_answers_without_noise_as_the_network_does_and_folds_to_its_class():
    net = NestedMLP().double().eval()
    ensemble = pluribus.ensemble(net, Single(dropout=0.4)).eval()
    x = vectors(6, torch.double)
    torch.testing.assert_close(ensemble(x)[0], net(x), rtol=0, atol=0)
    plain = ensemble.member(0)
    assert type(plain) is NestedMLP
    assert set(plain.state_dict()) == set(net.state_dict())
    NestedMLP().double().load_state_dict(plain.state_dict())


def test_dropout_in_training_has_the_mean_of_the_layer_alone():
    ensemble = pluribus.ensemble(nn.Linear(40, 2).double(), Single(dropout=0.3))
    x = torch.randn(1, 40, dtype=torch.double)
    drawn = ensemble.train()(x.expand(20_000, 40))[0]
    error = (drawn.mean(0) - ensemble.eval()(x)[0, 0]).abs()
    assert (error < 5 * drawn.std(0) / 20_000**0.5).all()
    assert (drawn.std(0) > 0.01).all()


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_no_share_is_refused(rate):
    with pytest.raises(ValueError, match="dropout must be"):
        Single(dropout=rate)


def test_a_spec_that_was_saved_before_there_was_dropout_is_one_without():
    assert pluribus.Spec.from_json({"method": "single"}) == Single()
