"""What specs say about tuning: candidates that every network can be converted to, and equivalences that hold."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Inner, MCDropout, TreeNet, Variance, VariationalDropout
from pluribus.core.spec import Spec, list_methods
from pluribus.core.surgery import Subject
from tests.networks import CLASSES, NETWORKS, NestedMLP, vectors


@pytest.mark.parametrize("method", list_methods())
@pytest.mark.parametrize("network", ["mlp", "residual"])
def test_every_candidate_is_an_option_that_makes_an_ensemble(method, network):
    make, data = NETWORKS[network]
    kind, net = Spec.registry[method], make()
    found = kind().list_candidates(Subject(net, data(2)))
    assert len(found) > 0 or kind.is_tuned_as_part, "a method that is not tuned as its members are offers something of its own"
    for option, values in found.items():
        assert len(values) == len(set(values))
        for value in values:
            ensemble = pluribus.ensemble(net, kind(**{option: value}), example=data(2)).eval()
            assert ensemble(data(3)).shape[1:] == (3, CLASSES)


def test_candidates_that_are_layers_are_places_that_differ():
    subject = Subject(NestedMLP(), vectors(2))
    assert Variance().list_candidates(subject)["include"] == (None, "head", "body.1.0")
    assert MCDropout().list_candidates(subject)["include"] == (None, "head")
    splits = TreeNet().list_candidates(subject)["split"]
    assert splits[0] is None
    trunks = [
        pluribus.ensemble(NestedMLP(), TreeNet(split=split), example=vectors(2)).describe().parameters for split in splits
    ]
    assert len(set(trunks)) == 3


def test_the_rate_of_mc_dropout_is_a_candidate_only_where_it_is_used():
    own = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 2))
    idle = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.0), nn.Linear(8, 2))
    assert "rate" not in MCDropout().list_candidates(Subject(own))
    assert "rate" in MCDropout().list_candidates(Subject(idle))


@pytest.mark.parametrize(("name", "decay"), [("adamw", 0.1), ("adam", 0.0)])
def test_inner_is_the_base_network_under_adam_as_it_says(name, decay):
    assert "base network by construction" in Inner(copies=4).describe_equivalence(name, 1e-3, decay, 100)
    base = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    ensemble = pluribus.ensemble(base, Inner(copies=4, include="*"))
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[name]
    options = {"lr": 1e-2, "weight_decay": decay, "eps": 1e-14}
    ours, theirs = kind(ensemble.param_groups(), **options), kind(base.parameters(), **options)
    x, y = torch.randn(16, 5, dtype=torch.double), torch.randint(0, 3, (16,))
    for _ in range(30):
        for optimizer, loss in ((ours, ensemble.loss(x, y)), (theirs, nn.functional.cross_entropy(base(x), y))):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for name, parameter in ensemble.member(0).named_parameters():
        torch.testing.assert_close(parameter, dict(base.named_parameters())[name], rtol=0, atol=1e-8)


def test_inner_says_which_base_network_it_is_under_sgd_and_nothing_under_adam_with_coupled_decay():
    said = Inner(copies=4).describe_equivalence("sgd", 0.2, 1e-2, 100)
    assert "learning rate 0.05" in said
    assert "weight decay 0.04" in said
    assert Inner().describe_equivalence("adam", 1e-3, 1e-2, 100) is None


def test_variational_dropout_says_when_its_noise_cannot_move():
    """A step of Adam moves a number by at most its rate (but for the first steps), so that 700 steps of 1e-3 move 0.7."""
    assert "by about 0.7 at most" in VariationalDropout().describe_equivalence("adamw", 1e-3, 0.0, 700)
    assert VariationalDropout(log_alpha_rate=10.0).describe_equivalence("adamw", 1e-3, 0.0, 700) is None
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), VariationalDropout())
    x, y = torch.randn(64, 4), torch.randint(2, (64,))
    before = {name: value.clone() for name, value in ensemble.named_parameters() if "log_alpha" in name}
    pluribus.fit(ensemble, (x, y), epochs=20, batch_size=16, lr=1e-2, schedule="constant", progress=False)
    moved = max((value - before[name]).abs().max().item() for name, value in ensemble.named_parameters() if name in before)
    assert before
    assert 0 < moved <= 80 * 1e-2 * 1.05


def test_other_methods_claim_no_equivalence():
    for method in list_methods():
        if method not in ("inner", "variational-dropout"):
            assert Spec.registry[method]().describe_equivalence("adamw", 1e-3, 0.0, 10) is None
