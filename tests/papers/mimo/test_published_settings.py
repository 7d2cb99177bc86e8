"""The settings of scale `paper`: they have the published sizes, and take a step."""

import pytest
import torch

import pluribus
from pluribus.models.registry import build
from pluribus.papers import load_recipes
from pluribus.papers.mimo import benchmark, table_3
from pluribus.papers.mimo.benchmark_cells import METHODS, configure_row
from pluribus.papers.mimo.imagenet import configure
from pluribus.papers.trained_runs import take_run_settings
from pluribus.runs.config import build_config

WRN, THIN, GROUP, RESNET = 36_479_194, 9_132_634, 27_870_090, 25_557_032
"""Parameters of WRN-28-10 and WRN-28-5 for ten classes, of the third group of WRN-28-10 and all after it, of ResNet-50."""
HEAD = 6_410
"""Of the last layer of WRN-28-10."""
SIZES = {
    benchmark.DETERMINISTIC: WRN,
    benchmark.DROPOUT: WRN,
    benchmark.MULTIHEAD: WRN + 2 * HEAD,
    benchmark.MIMO: WRN + 2 * HEAD + 2 * 432,
    benchmark.TREENET: WRN + 2 * GROUP,
    benchmark.BATCH_ENSEMBLE: None,
    benchmark.THIN: 4 * THIN,
    benchmark.ENSEMBLE: 4 * WRN,
    benchmark.LONGER: WRN,
    benchmark.SCALED: WRN,
}


def convert(settings, shape, classes, model=None):
    config = build_config(take_run_settings(settings) | ({"model": model} if model else {}))
    options = dict(config.model)
    net = build(options.pop("name"), shape, classes, **options)
    return pluribus.ensemble(net, config.spec)


def list_trainings():
    """Every different training of scale paper on CIFAR, by artefact and cell."""
    found = {}
    for recipe in load_recipes().values():
        if recipe.paper_name == "mimo" and recipe.name != "capacity":  # which is ours
            for name, options in recipe.scales["paper"].cells.items():
                if "data" in options.get("training", {}):
                    found.setdefault(repr(options["training"] | {"seed": 0}), (f"{recipe.name}: {name}", options["training"]))
    return dict(found.values())


def test_every_published_training_is_one_that_pluribus_train_takes():
    trainings = list_trainings()
    assert len(trainings) > 60
    for settings in trainings.values():
        assert build_config(take_run_settings(settings)).spec.name == settings["method"]["name"]


@pytest.mark.parametrize("row", METHODS)
def test_the_rows_of_table_1_have_their_published_sizes(row):
    with torch.device("meta"):  # it is counted, and not run
        ensemble = convert(configure_row("paper", row, None), (3, 32, 32), 10)
    count = sum(parameter.numel() for parameter in ensemble.parameters())
    if SIZES[row] is not None:
        assert count == SIZES[row]
    else:  # four members with factors for the inputs and outputs of every layer, and a bias of their own for the last
        weights = [weight for weight in build("wrn-28-10", (3, 32, 32), 10).parameters() if weight.dim() > 1]
        factors = sum(sum(weight.shape[:2]) for weight in weights)
        assert count == WRN + 4 * factors + 3 * 10


@pytest.mark.parametrize("row", METHODS)
def test_the_rows_of_table_1_take_a_step_on_a_small_network(row):
    """The methods as published, on a network of the same kind."""
    settings = configure_row("paper", row, None)
    check_step(convert(settings, (3, 32, 32), 10, {"name": "wrn", "depth": 10, "width": 1}), 32, 10)


@pytest.mark.slow
@pytest.mark.parametrize("row", METHODS)
def test_the_rows_of_table_1_take_a_step_as_published(row):
    check_step(convert(configure_row("paper", row, None), (3, 32, 32), 10), 32, 10)


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[] if row == benchmark.MIMO else pytest.mark.slow) for row in table_3.METHODS]
)
def test_the_rows_of_table_3_have_their_published_sizes_and_take_a_step(row):
    method, model, epochs = table_3.METHODS[row]
    ensemble = convert(configure("paper", method, model, epochs=epochs) | {"data": "digits"}, (3, 64, 64), 1000)
    if row == benchmark.DETERMINISTIC:
        assert sum(parameter.numel() for parameter in ensemble.parameters()) == RESNET
    check_step(ensemble, 64, 1000)


def check_step(ensemble, size, classes):
    ensemble.train()
    loss = ensemble.loss(torch.rand(2, 3, size, size), torch.tensor([0, classes - 1]))
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad is not None for parameter in ensemble.parameters())
