"""What the trainings of the artefacts share: features, bounds, and how fast log α is learnt."""

import dataclasses

import pytest
import torch

import pluribus
from pluribus import Variance, VariationalDropout
from pluribus.data import load
from pluribus.papers import load_recipes
from pluribus.papers.recipe import Workspace
from pluribus.papers.variance import configurations
from pluribus.papers.variance.bounds import BoundTracker, measure_bound
from pluribus.papers.variance.configurations import (
    configure_dropout_lenet,
    configure_variational_cifar,
    configure_variational_lenet,
    configure_zero_mean_cifar,
    configure_zero_mean_lenet,
)
from pluribus.papers.variance.features import compute_features, cut_before
from pluribus.papers.variance.networks import build_network, list_variational_layers
from pluribus.papers.variance.seeds import SEEDS
from pluribus.papers.variance.trainings import Training, enlarge_digits, load_training_data, train_once


def test_features_are_what_enters_the_dense_layer():
    net = build_network("lenet", 0, size=16, width=0.2).eval()
    data = enlarge_digits(load("digits"), 16, {"kind": "lenet"}).subsample(30, seed=0)
    features = compute_features(data, net)
    assert (features.train.x.shape, features.outputs) == ((30, 10), 10)
    images, rows = data.preparation(data.test.x), features.preparation(features.test.x)
    rest = torch.nn.Sequential(*list(net.children())[len(cut_before(net, "dense1")) :])
    torch.testing.assert_close(rest(rows), net(images))
    assert torch.equal(features.train.y, data.train.y)


def test_a_network_without_the_layer_is_refused():
    with pytest.raises(ValueError, match="must have a layer 'dense1' to cut before, it has 0"):
        cut_before(torch.nn.Sequential(torch.nn.Linear(1, 1)), "dense1")


@pytest.mark.parametrize("kind", ["layer", "weight", "additive"])
def test_the_bound_is_that_of_the_method(kind):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    ensemble = pluribus.ensemble(net, VariationalDropout(parameterization=kind, log_alpha=-8.0)).double()
    x, y = torch.randn(50, 4, dtype=torch.double), torch.randint(0, 3, (50,))
    found, expected = measure_bound(ensemble, x, y), ensemble.elbo([(x, y)], samples=2000)
    assert found["kl"] == pytest.approx(expected.kl)
    assert found["data"] == pytest.approx(expected.data, rel=0.02)
    twice = measure_bound(ensemble, x, y, rows=100)
    assert twice == {"data": pytest.approx(2 * found["data"]), "kl": found["kl"]}


def test_a_variance_layer_pays_no_divergence():
    ensemble = pluribus.ensemble(torch.nn.Sequential(torch.nn.Linear(4, 3)), Variance(include="0"))
    found = measure_bound(ensemble, torch.randn(9, 4), torch.zeros(9, dtype=torch.long))
    assert found["kl"] == 0
    assert found["data"] < 0


@pytest.mark.parametrize(
    ("epochs", "tracked"), [(20, {2, 4, 6, 8, 10, 12, 14, 16, 18, 20}), (2, {1, 2}), (6, {1, 2, 3, 4, 5, 6})]
)
def test_the_bound_is_tracked_after_every_tenth(epochs, tracked):
    assert BoundTracker(torch.zeros(1), torch.zeros(1), 1, epochs).epochs == tracked


def test_a_training_on_features_is_tracked_and_continues_with_the_same_digits(tmp_path):
    training = configure_variational_lenet("smoke", 1)
    (tmp_path / "cell").mkdir()
    workspace = Workspace(tmp_path / "cell", tmp_path / "shared")
    done = train_once(training, workspace)
    assert [row["epoch"] for row in done.bounds] == [1, 2]
    assert set(done.bounds[-1]["log_alpha"]) == {"dense1"}
    assert done.x.shape[1:] == (10,)
    assert Training.from_json(training.to_json()) == training
    again = load_training_data(training, workspace)
    torch.testing.assert_close(again.test.x, done.data.test.x)


@pytest.mark.parametrize("scale", ["smoke", "cpu"])
def test_artefacts_share_their_trainings(scale):
    """The networks that table 1 measures are those of the figures, and all of them have the features of table 2's network."""

    def keys(artefact, part="training"):
        cells = load_recipes()[f"variance/{artefact}"].scales[scale].cells.values()
        return {Training.from_json(cell[part]).key for cell in cells}

    zero_mean = {configure_zero_mean_lenet(scale, seed).key for seed in SEEDS[scale]}
    for artefact in ("table-1", "noises", "absolute", "figure-4", "figure-5", "figure-9"):
        assert zero_mean <= keys(artefact)
    assert keys("figure-4") == keys("figure-5") == keys("figure-9") == zero_mean
    assert keys("figure-3") <= keys("table-1")
    base = {configure_dropout_lenet(scale, seed).key for seed in SEEDS[scale]}
    assert base <= keys("table-2")
    for artefact in ("table-1", "table-3", "noises", "absolute", "figure-3", "figure-4", "figure-5", "figure-9", "kappa"):
        assert keys(artefact, "base") == base


def test_log_alpha_can_move_as_far_as_in_the_papers_steps():
    for training, kind in ((configure_variational_lenet("cpu"), "lenet"), (configure_variational_cifar("cpu"), "cifar")):
        options = {name: getattr(training, name) for name in ("data", "epochs", "batch", "lr")}
        reach = configurations.compute_reach(options)
        assert training.spec.log_alpha_rate * reach == pytest.approx(configurations.PAPER_REACH[kind], rel=0.01)
        faster = (configure_variational_lenet if kind == "lenet" else configure_variational_cifar)("cpu", faster=2.0)
        assert faster.spec.log_alpha_rate == 2 * training.spec.log_alpha_rate
        assert faster.key != training.key


def test_the_fast_network_has_three_variational_convolutions_and_no_dropout_after_them():
    net = build_network("fast", 0, width=0.1, dropout=0.1, variational=True)
    layers = list_variational_layers(net)
    convolutions = [name for name, module in net.named_modules() if isinstance(module, torch.nn.Conv2d)]
    assert layers == convolutions[-3:]
    assert [module.p for module in net.modules() if isinstance(module, torch.nn.Dropout)] == [0.0, 0.0]
    plain = build_network("fast", 0, width=0.1, dropout=0.1)
    assert [module.p for module in plain.modules() if isinstance(module, torch.nn.Dropout)] == [0.1, 0.1]
    assert configure_zero_mean_cifar("cpu").spec.include == layers[-1]


def shrink(training):
    """The same training of a narrow network on a few digits for an epoch, and so that of what it starts from."""
    start = None if training.start is None else shrink(Training.from_json(training.start)).to_json()
    network = training.network | {"width": 0.1}
    few = {"data": "digits32", "rows": 60, "epochs": 1, "batch": 30}
    tracked = {"tracked": min(training.tracked, 10), "bounded": min(training.bounded, 20)}
    return dataclasses.replace(training, network=network, start=start, **few, **tracked)


@pytest.mark.parametrize("configure", [configure_variational_cifar, configure_zero_mean_cifar])
def test_the_settings_of_scale_cpu_train_the_network_for_cifar(configure, tmp_path):
    training = shrink(configure("cpu", 1))
    workspace = Workspace(tmp_path, tmp_path / "shared")
    done = train_once(training, workspace)
    base = train_once(Training.from_json(training.start), workspace)
    assert Training.from_json(training.start).settings["optimizer"] == "muon"
    assert all(parameter.isfinite().all() for each in (done, base) for parameter in each.ensemble.parameters())
    assert len(done.history) == len(base.history) == 1
    before, after = (each.state_dict()["1.weight"] for each in (base.ensemble.member(0), done.ensemble.net))
    torch.testing.assert_close(after, before, atol=0.01, rtol=0)  # two steps of Adam from there
    assert not torch.equal(after, before)
