"""Means over seeds have Student's interval, and differences are those of the same seed."""

import math

import pytest

from pluribus.papers import load_recipes
from pluribus.papers.variance.seeds import SEEDS, compare, estimate, group_seeds, tabulate_share

from .rules import HALF, SPREAD


def test_the_interval_is_students():
    assert estimate([5 + step for step in SPREAD]) == pytest.approx((5, 5 - HALF, 5 + HALF), abs=1e-4)
    assert estimate([5 + step for step in SPREAD]).margin == pytest.approx(HALF, abs=1e-4)


def test_one_seed_says_nothing_of_the_spread():
    assert estimate([5.0]) == (5.0, -math.inf, math.inf)
    assert tabulate_share({0: {"one": 0.5}}, ["one"]) == {"one": 50.0, "one_margin": None}


def test_a_difference_is_that_of_the_same_seed():
    ours, theirs = ({seed: {"x": base + 10.0 * seed} for seed in (1, 2, 3)} for base in (1.5, 1.0))
    assert compare(ours, theirs, "x") == pytest.approx((0.5, 0.5, 0.5))
    assert compare(ours, {2: {"x": 20.0}, 3: {"x": 29.0}, 4: {"x": 0.0}}, "x").value == pytest.approx(2.0)


def test_a_cell_without_a_seed_in_its_name_is_a_row_of_one():
    cells = group_seeds({"LeNet-5, MNIST, dropout": {}, "layer, seed 1": {}, "layer, seed 12": {}})
    assert {row: list(own) for row, own in cells.items()} == {"LeNet-5, MNIST, dropout": [0], "layer": [1, 12]}


def test_networks_are_judged_on_other_seeds_than_the_one_on_which_settings_were_chosen():
    assert len(SEEDS["cpu"]) >= 3
    assert 0 not in SEEDS["cpu"]


OURS = [recipe for recipe in load_recipes().values() if recipe.paper_name == "variance"]


@pytest.mark.parametrize("recipe", OURS, ids=lambda recipe: recipe.id)
def test_every_network_of_scale_cpu_is_trained_with_three_seeds_and_its_control_with_one_of_them(recipe):
    for row, cells in group_seeds(recipe.scales["cpu"].cells).items():
        trained = any(key in cell for cell in cells.values() for key in ("training", "trainings"))
        if trained and "log α twice as fast" in row:
            own = row.replace(", log α twice as fast", "")
            assert set(cells) < set(group_seeds(recipe.scales["cpu"].cells)[own])
        elif trained and "ensemble" not in row:
            assert len(cells) >= 3, row
        for seed, cell in cells.items():
            assert not trained or cell["seed"] == seed
