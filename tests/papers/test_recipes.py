"""Every recipe: complete, in step with its paper's list, and able to run."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from pluribus.papers import PAPERS, SCALES, load_recipes
from pluribus.papers.page import format_page
from pluribus.papers.reproduction import Reproduction, reproduce
from pluribus.papers.results import build_result, locate_result, read_paper_results, read_result, rebuild_result
from pluribus.papers.variance import ORDER
from pluribus.papers.variance.trainings import Training

from ..shortcuts import shorten_measurements

RECORDED = Path(__file__).parents[2] / "papers"
EVERY = list(load_recipes().values())


def test_the_variance_papers_have_their_sixteen_artefacts_and_one_of_ours():
    assert [recipe.name for recipe in EVERY if recipe.paper_name == "variance"] == list(ORDER)
    assert len(ORDER) == len(set(ORDER)) == 17
    assert "worth" in ORDER


@pytest.mark.parametrize("recipe", EVERY, ids=lambda recipe: recipe.id)
def test_options_are_json_and_every_scale_has_cells(recipe):
    for scale in SCALES:
        cells = recipe.scales[scale].cells
        assert cells or (scale == "cpu" and recipe.scales[scale].not_run)
        assert json.loads(json.dumps(dict(cells))) == json.loads(json.dumps(cells))


TWINS = {
    *("mimo/table-2", "mimo/table-3", "mimo/figure-6", "mimo/figure-8"),
    *("mixture/table-2", "mixture/table-3", "mixture/table-5", "inner/figure-3", "inner/table-5"),
}
"""What they run others run: mimo/table-1, table-4, figure-5 and figure-7, mixture/table-1, inner/table-1. `make test-all` runs
them, too."""


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Runs a recipe at the smallest scale, all of them in one folder, where they share trainings."""
    place = tmp_path_factory.mktemp("smoke")
    found = {}

    def run(recipe):
        if recipe.id not in found:
            with shorten_measurements():
                found[recipe.id] = reproduce(Reproduction(recipe, "smoke", place / "out", place / "work"))
        return found[recipe.id]

    return place / "out", run, found


@pytest.mark.parametrize(
    "recipe", [pytest.param(each, id=each.id, marks=[pytest.mark.slow] * (each.id in TWINS)) for each in EVERY]
)
def test_smoke_runs_and_leaves_rows_verdicts_and_a_figure(recipe, smoke):
    out, run, _ = smoke
    result = run(recipe)
    assert result["complete"]
    assert result["verdicts"]
    assert all(verdict["outcome"] == "not run at this scale" for verdict in result["verdicts"])
    assert all(set(row) <= set(result["columns"]) for row in result["rows"])
    figure = locate_result(out, recipe, "smoke").with_suffix(".svg")
    assert figure.exists() == (recipe.draw is not None)


def test_the_page_of_smoke_names_everything(smoke):
    out, run, found = smoke
    for paper in PAPERS:
        run(next(recipe for recipe in EVERY if recipe.paper_name == paper))
        text = (out / paper / "README.md").read_text()
        assert all(f"## {key}:" in text for key in found if key.startswith(f"{paper}/"))


def trainings(value):
    """All trainings named in a cell's options."""
    if isinstance(value, dict):
        if "spec" in value and "network" in value:
            yield Training.from_json(value)
        else:
            for entry in value.values():
                yield from trainings(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from trainings(entry)


PUBLISHED = {
    (one := dataclasses.replace(training, seed=0)).key: one  # another seed is no other setting
    for recipe in EVERY
    for training in trainings(dict(recipe.scales["paper"].cells))
}
WEIGHTS = {"lenet": 430_500, "vgg": 14_977_728}
"""Of convolutions and dense layers, without biases, for ten classes."""


FIRST = {(each.network["kind"], each.spec.name): key for key, each in reversed(PUBLISHED.items())}.values()
"""A setting of each network with each method: the others differ in options and classes."""


def check_size(training):
    with torch.device("meta"):  # it is counted, and not run
        net = training.build()
    layers = [layer for layer in net.modules() if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear)]
    last = layers[-1].weight.numel()
    classes = training.network.get("classes", 10)
    assert sum(layer.weight.numel() for layer in layers) - last + last * 10 // classes == WEIGHTS[training.network["kind"]]
    assert training.epochs == {"lenet": 200, "vgg": 550}[training.network["kind"]]


@pytest.mark.parametrize("training", PUBLISHED.values(), ids=list(PUBLISHED))
def test_every_published_setting_has_the_published_size(training):
    check_size(training)


@pytest.mark.parametrize(
    "training",
    [pytest.param(each, id=key, marks=[] if key in FIRST else pytest.mark.slow) for key, each in PUBLISHED.items()],
)
def test_the_published_setting_has_the_published_size_and_takes_a_step(training):
    check_size(training)
    shape = (1, 28, 28) if training.network["kind"] == "lenet" else (3, 32, 32)
    ensemble = training.convert().train()
    loss = ensemble.loss(torch.rand(2, *shape), torch.tensor([0, 1]), examples=60_000)
    loss.backward()
    assert all(parameter.grad is not None for parameter in ensemble.parameters())


@pytest.mark.parametrize("recipe", EVERY, ids=lambda recipe: recipe.id)
def test_what_is_recorded_follows_from_its_cells(recipe):
    """Rows and verdicts were not typed in: they come of the cells by the recipe's rules."""
    recorded = read_result(RECORDED, recipe, "cpu")
    if not recorded:
        pytest.skip("nothing is recorded")
    again = json.loads(
        json.dumps(rebuild_result(recipe, recorded) if recorded["complete"] else build_result(recipe, "cpu", recorded["cells"]))
    )
    assert again == recorded


@pytest.mark.parametrize("recipe", EVERY, ids=lambda recipe: recipe.id)
def test_a_recorded_cell_without_a_number_or_with_a_text_for_one_is_refused(recipe):
    recorded = read_result(RECORDED, recipe, "cpu")
    if not recorded:
        pytest.skip("nothing is recorded")
    found = next(iter(recorded["cells"].values()))["found"]
    recipe.measured.model_validate(found)
    optional = {name for name, field in recipe.measured.model_fields.items() if not field.is_required()}
    wrong = [found | {name: "text"} for name in found]
    wrong += [{key: value for key, value in found.items() if key != name} for name in found if name not in optional]
    for each in wrong:
        with pytest.raises(ValidationError):
            recipe.measured.model_validate(each)


def test_the_recorded_page_follows_from_the_recorded_results():
    found = read_paper_results(RECORDED, "variance")
    if not found:
        pytest.skip("nothing is recorded")
    assert (RECORDED / "variance" / "README.md").read_text(encoding="utf-8") == format_page("variance", found)
