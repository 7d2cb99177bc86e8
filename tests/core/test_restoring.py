import copy

import pytest
import torch
from torch import nn

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    LowRank,
    MCDropout,
    Multihead,
    Single,
    TreeNet,
    Unsupported,
    Variance,
    VariationalDropout,
)
from tests.contract_rows import METHODS, SOME_PAIRS
from tests.networks import CLASSES, NestedMLP, vectors
from tests.test_contract import convert_trained

SEVERAL = [BatchEnsemble(3), LowRank(3), MIMO(3), Multihead(3), TreeNet(3), DeepEnsemble(3), DeepEnsemble(3, of=Inner(2))]


def move(ensemble: pluribus.Ensemble) -> pluribus.Ensemble:
    """All weights elsewhere, as training leaves them."""
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return ensemble.eval()


@pytest.mark.parametrize(("method", "network"), SOME_PAIRS)
def test_the_weights_of_every_method_go_back_into_the_users_network_or_it_says_why_not(method, network):
    row = METHODS[method]
    net, ensemble, x = convert_trained(row.spec, network)
    if not row.restores:
        with pytest.raises(Unsupported, match="no "):
            pluribus.restore(ensemble)
        return
    mine = copy.deepcopy(net)
    for restored in (pluribus.restore(ensemble), pluribus.restore(ensemble, x, torch.arange(5) % CLASSES)):
        assert type(restored) is type(net)
        mine.load_state_dict(restored.state_dict())
        torch.testing.assert_close(mine(x), restored(x), rtol=0, atol=1e-12)
        if row.plain_members:  # it is one of them
            assert (ensemble(x) - restored(x)).abs().amax((1, 2)).min() < 1e-10


@pytest.mark.parametrize("spec", SEVERAL, ids=str)
def test_it_is_the_member_with_the_lowest_loss_on_the_rows(spec):
    ensemble = move(pluribus.ensemble(NestedMLP().double(), spec))
    x = vectors(40, torch.double)
    answers = ensemble(x)
    for best in range(3):
        y = answers[best].argmax(1)  # what this member says
        losses = [nn.functional.cross_entropy(answer, y).item() for answer in answers]
        lowest = losses.index(min(losses))
        torch.testing.assert_close(pluribus.restore(ensemble, x, y)(x), answers[lowest], rtol=0, atol=1e-10)
    torch.testing.assert_close(pluribus.restore(ensemble)(x), answers[0], rtol=0, atol=1e-10)


def test_rows_choose_among_branches_that_draw():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).double()
    for spec in (DeepEnsemble(3, of=MCDropout(samples=2)), TreeNet(3, split="3", of=MCDropout(samples=2))):
        ensemble = move(pluribus.ensemble(net, spec))
        x, found = torch.randn(40, 4, dtype=torch.double), []
        for index in range(ensemble.count_networks()):
            wanted = ensemble.network(index)
            found.append(pluribus.restore(ensemble, x, wanted(x).argmax(1))(x).argmax(1))
        assert len(found) == 3
        assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize(
    "spec", [Single(), Single(dropout=0.3), Inner(3), Inner(3, fold="inverse-variance"), Inner(3, lean=True)]
)
def test_an_ensemble_that_is_one_network_gives_it_folded(spec):
    ensemble = move(pluribus.ensemble(NestedMLP().double(), spec))
    x = vectors(5, torch.double)
    torch.testing.assert_close(pluribus.restore(ensemble)(x), ensemble.fold()(x)[0], rtol=0, atol=1e-12)


def test_noise_about_a_mean_gives_the_mean_also_after_its_draws_were_fixed():
    net, x = NestedMLP().double().eval(), vectors(5, torch.double)
    for spec in (VariationalDropout(samples=3), VariationalDropout(parameterization="additive"), MCDropout(samples=3)):
        ensemble = pluribus.ensemble(net, spec, example=x).eval()
        for each in (ensemble, ensemble.freeze(2)):
            torch.testing.assert_close(pluribus.restore(each)(x), net(x), rtol=0, atol=1e-12)


def test_the_networks_own_dropout_is_back():
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.4), nn.Linear(8, 3))
    restored = pluribus.restore(pluribus.ensemble(net, MCDropout(samples=3)))
    assert isinstance(restored[1], nn.Dropout)
    assert restored[1].p == 0.4
    x = torch.ones(500, 4)
    assert torch.equal(restored(x), net.eval()(x))
    assert not torch.equal(restored.train()(x)[0], restored(x)[1])


def test_it_returns_all_that_the_network_returned():
    class Named(NestedMLP):
        def forward(self, x):
            return {"logits": super().forward(x), "extra": x}

    ensemble = pluribus.ensemble(Named(), BatchEnsemble(2), output="logits")
    x = vectors(4)
    restored = pluribus.restore(ensemble, x, torch.arange(4) % 3)
    assert set(restored(x)) == {"logits", "extra"}
    assert ensemble.member(0)(x).shape == (4, 3)


def test_a_regression_is_chosen_by_its_own_loss():
    ensemble = move(pluribus.ensemble(NestedMLP(1).double(), DeepEnsemble(3), task="regression"))
    x = vectors(30, torch.double)
    y = ensemble(x)[2, :, 0]
    torch.testing.assert_close(pluribus.restore(ensemble, x, y)(x)[:, 0], y, rtol=0, atol=1e-10)


def test_the_ensemble_stays_as_it_is():
    ensemble = move(pluribus.ensemble(NestedMLP(), LowRank(2)))
    before = copy.deepcopy(ensemble.state_dict())
    with torch.no_grad():
        for parameter in pluribus.restore(ensemble).parameters():
            parameter.zero_()
    assert all(torch.equal(before[name], tensor) for name, tensor in ensemble.state_dict().items())


@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        (Variance(include="1"), {}, "their mean is zero"),
        (VariationalDropout(parameterization="zero-mean"), {}, "it learnt their variances"),
        (pluribus.Maxout(copies=2), {}, "the maximum of several layers is no layer"),
        (BatchEnsemble(2), {"task": "regression", "noise": "beta-nll"}, "is wider than it was"),
        (BatchEnsemble(2), {"task": "regression", "quantiles": (0.1, 0.9)}, "is wider than it was"),
    ],
)
def test_where_the_class_cannot_be_given_back_the_reason_is_said(spec, options, reason):
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), spec, **options)
    with pytest.raises(Unsupported, match=reason):
        pluribus.restore(ensemble)


def test_wrong_arguments_are_told():
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble(2))
    with pytest.raises(TypeError, match="restore takes an ensemble, got NestedMLP"):
        pluribus.restore(NestedMLP())
    with pytest.raises(ValueError, match="pass y, too, or leave x out"):
        pluribus.restore(ensemble, vectors(3))
    with pytest.raises(ValueError, match="pass x, too, or leave y out"):
        pluribus.restore(ensemble, y=torch.zeros(3))
