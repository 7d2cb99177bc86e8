"""The settings of scale `paper`: they are runs that pluribus takes, on networks of the published sizes, and take a step."""

import pytest
import torch

import pluribus
from pluribus.core.describe import count_parameters
from pluribus.models.registry import build
from pluribus.papers import load_recipes
from pluribus.papers.inner.cell_trainings import TRAININGS, configure_search
from pluribus.papers.inner.networks import NETWORKS
from pluribus.papers.inner.rows import BASE, DENSE, DROPOUT_IEN, IEN, LEAN, MAXOUT, ROWS, configure
from pluribus.papers.trained_runs import take_run_settings
from pluribus.runs.config import build_config
from pluribus.search import SearchSettings

RELATIVES = {"resnet56": {"name": "resnet", "depth": 8}, "densenet40": {"name": "densenet", "depth": 10}}
"""Small networks of the same kind."""
CONVOLUTIONS = 848_304
"""Weights of ResNet56 that inner ensembles copy."""


def convert(settings, model=None):
    config = build_config(take_run_settings(settings) | ({"model": model} if model else {}))
    options = dict(config.model)
    return pluribus.ensemble(build(options.pop("name"), (3, 32, 32), 10, **options), config.spec)


def test_every_published_training_is_one_that_pluribus_train_takes():
    count = 0
    for artefact in ("table-1", "figure-3", "table-2", "table-5"):
        for options in load_recipes()[f"inner/{artefact}"].scales["paper"].cells.values():
            config = build_config(take_run_settings(options["training"]))
            assert config.spec.name == options["training"]["method"]["name"]
            assert config.optimizer == "sgd"
            if config.precision != "64":  # these last an epoch, and compare trainings that are the same
                assert config.epochs == (200 if "resnet" in config.model["name"] else 300)
            count += 1
    assert count > 500


@pytest.mark.parametrize(
    ("row", "count"),
    [
        (BASE, 853_018),
        (IEN, 853_018 + 3 * CONVOLUTIONS),
        pytest.param(DENSE, 853_018 + 3 * (CONVOLUTIONS + 650), marks=pytest.mark.slow),
        pytest.param(MAXOUT, 853_018 + 3 * CONVOLUTIONS, marks=pytest.mark.slow),
    ],
)
def test_the_rows_of_resnet56_have_their_sizes(row, count):
    with torch.device("meta"):  # it is counted, and not run
        assert count_parameters(convert(configure("paper", "ResNet56, CIFAR-10", ROWS[row].method))) == count
    assert round((853_018 + 4 * CONVOLUTIONS) / 1e6, 2) == 4.25  # the paper's, which counts a copy that is not used


@pytest.mark.parametrize("network", ["ResNet56, CIFAR-10", pytest.param("DenseNet40-12, CIFAR-10", marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", [BASE, IEN, DENSE, MAXOUT, LEAN])
def test_rows_take_a_step_on_a_small_network_of_the_same_kind(network, row):
    settings = configure("paper", network, ROWS[row].method)
    check_step(convert(settings, RELATIVES[settings["model"]]))


def test_dropout_reaches_the_published_network():
    cells = load_recipes()["inner/table-5"].scales["paper"].cells
    settings = cells[f"ResNet56, CIFAR-10: {DROPOUT_IEN}, seed 0"]["training"]
    assert settings["model"] == {"name": "resnet56", "dropout": 0.5}
    check_step(convert(settings, {"name": "resnet", "depth": 8, "dropout": 0.5}))


@pytest.mark.slow
@pytest.mark.parametrize("network", [name for name in NETWORKS["paper"] if name.endswith("CIFAR-10")])
def test_the_published_networks_take_a_step(network):
    check_step(convert(configure("paper", network, ROWS[IEN].method)))


def test_searches_and_trainings_of_cells_are_those_of_nas_bench_201():
    for algorithm, epochs in (("darts", 50), ("gdas", 250)):
        settings = {key: value for key, value in configure_search("paper", algorithm, "all").items() if key != "operations"}
        found = SearchSettings(**settings)
        assert (found.epochs, found.batch_size, found.width, found.cells, found.architecture_lr) == (epochs, 64, 16, 5, 3e-4)
    config = build_config(TRAININGS["paper"])
    assert (config.epochs, config.batch_size, config.lr, config.decay) == (200, 256, 0.1, 5e-4)


def check_step(ensemble):
    ensemble.train()
    loss = ensemble.loss(torch.rand(2, 3, 32, 32), torch.tensor([0, 9]))
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad is not None for parameter in ensemble.parameters())
