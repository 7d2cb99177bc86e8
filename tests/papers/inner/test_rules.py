"""The rules of the IEN paper: numbers just inside and just outside each threshold give the outcome that the rule states."""

import math
from functools import cache
from pathlib import Path

import pytest

from pluribus.analysis import compute_variance_gain, sample_response_variance
from pluribus.papers import load_recipes
from pluribus.papers.inner import figure_2, list_findings
from pluribus.papers.inner.random_networks import build_network, describe_response, get_activation

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
CELLS = figure_2.list_cells("cpu")
IEN, DEPTH, START, ABSTRACT, HALF, LESS, INVERTED, UPPER, EXPLODES, LOWER, ASYMPTOTE, MAXOUT, EXACT = range(13)


@cache
def compute_exact(method, size, layers):
    return compute_variance_gain(describe_response(method, size), layers, get_activation(layers))


def build_found(**changes):
    """Every point has its exact value, but those that are changed: method → {(size, layers): value}."""
    found = {}
    for method, options in CELLS.items():
        points = []
        for size, layers in options["points"]:
            exact = compute_exact(method, size, layers)
            drawn = changes.get(method.replace(" ", "_").replace(".", ""), {}).get((size, layers), exact)
            points.append({"size": float(size), "layers": layers, "exact": exact, "drawn": drawn, "error": 0.01 * exact})
        found[method] = {"points": points}
    return found


def judge(claim, **changes):
    return load_recipes()["inner/figure-2"].judge(build_found(**changes))[claim].outcome


def test_exact_values_give_these_outcomes():
    outcomes = [verdict.outcome for verdict in load_recipes()["inner/figure-2"].judge(build_found())]
    partly = {ABSTRACT: NOT, HALF: DIRECTION, LESS: DIRECTION, ASYMPTOTE: DIRECTION}
    assert outcomes == [partly.get(claim, REPRODUCED) for claim in range(13)]


@pytest.mark.parametrize(
    ("claim", "changes", "outcome"),
    [
        (IEN, {"inner": {(2, 1): 0.5 * 1.029}}, REPRODUCED),
        (IEN, {"inner": {(2, 1): 0.5 * 0.971}}, REPRODUCED),
        (IEN, {"inner": {(2, 1): 0.5 * 1.031}}, DIRECTION),
        (IEN, {"inner": {(4, 1): 0.334}}, NOT),
        (DEPTH, {"inner": {(4, 3): 4**-3 * 1.099}}, REPRODUCED),
        (DEPTH, {"inner": {(4, 3): 4**-3 * 1.101}}, DIRECTION),
        (DEPTH, {"inner": {(4, 3): 4**-2 * 1.01}}, NOT),
        (START, {"eq_10": {(4, 4): 1.099}}, REPRODUCED),
        (START, {"eq_10": {(4, 4): 1.101}}, DIRECTION),
        (START, {"eq_10": {(4, 4): 0.501}}, DIRECTION),
        (START, {"eq_10": {(4, 4): 0.499}}, NOT),
        (START, {"eq_10": {(4, 2): 2.01}}, NOT),
        (ABSTRACT, {"eq_10": {(4, layers): 4**-layers * 1.099 for layers in (1, 2, 3, 4)}}, REPRODUCED),
        (ABSTRACT, {"eq_10": {(4, layers): 4**-layers * 1.101 for layers in (1, 2, 3, 4)}}, DIRECTION),
        (ABSTRACT, {"eq_10": {(4, 4): 0.899}}, DIRECTION),
        (ABSTRACT, {"eq_10": {(4, 4): 0.901}}, NOT),
    ],
)
def test_inner_ensembles_by_copies_depth_and_start(claim, changes, outcome):
    assert judge(claim, **changes) == outcome


@pytest.mark.parametrize(
    ("claim", "changes", "outcome"),
    [
        (HALF, {"dropout": {(0.75, 1): 0.514, (0.9, 1): 0.514}}, REPRODUCED),
        (HALF, {"dropout": {(0.75, 1): 0.514, (0.9, 1): 0.516}}, DIRECTION),
        (HALF, {"dropout": {(0.5, 1): 0.486}}, DIRECTION),
        (HALF, {"dropout": {(0.5, 1): 0.484}}, NOT),
        (LESS, {"dropout": {(0.1, 1): 0.34, (0.25, 1): 0.34}}, REPRODUCED),
        (LESS, {"dropout": {(0.1, 1): 0.33, (0.25, 1): 0.34}}, DIRECTION),
        (LESS, {"inner": {(3, 1): 0.499}}, DIRECTION),
        (LESS, {"inner": {(3, 1): 0.501}}, NOT),
        (LESS, {"inner": {(2, 1): 0.6}}, DIRECTION),  # the claim is about more than two copies
        (INVERTED, {"inverted_dropout": {(0.1, 1): 10.29}}, REPRODUCED),
        (INVERTED, {"inverted_dropout": {(0.1, 1): 10.31}}, DIRECTION),
        (INVERTED, {"inverted_dropout": {(0.9, 1): 0.99}}, NOT),
    ],
)
def test_dropout_at_every_probability(claim, changes, outcome):
    assert judge(claim, **changes) == outcome


@pytest.mark.parametrize(
    ("claim", "changes", "outcome"),
    [
        (UPPER, {"maxout": {(2, 1): 1.99, (4, 3): 63.9}}, REPRODUCED),
        (UPPER, {"maxout": {(4, 3): 64.1}}, DIRECTION),
        (UPPER, {"maxout": {(2, 1): 2.01}}, NOT),
        (EXPLODES, {"maxout": {(4, 1): 0.2, (4, 2): 0.3, (4, 3): 0.4, (4, 4): 1.01}}, REPRODUCED),
        (EXPLODES, {"maxout": {(4, 1): 0.3, (4, 2): 0.4, (4, 3): 0.5, (4, 4): 0.99}}, DIRECTION),
        (EXPLODES, {"maxout": {(4, 1): 0.3, (4, 2): 0.2, (4, 3): 0.5, (4, 4): 2.0}}, DIRECTION),
        (EXPLODES, {"maxout": {(4, 1): 0.3, (4, 2): 0.06}}, NOT),
        (LOWER, {"maxout": {(2, 1): 0.451 / math.log(2)}}, REPRODUCED),
        (LOWER, {"maxout": {(2, 1): 0.449 / math.log(2)}}, DIRECTION),
        (LOWER, {"maxout": {(2, 1): 0.299 / math.log(2)}}, NOT),
        (ASYMPTOTE, {"maxout": {(m, 1): math.pi**2 / 12 / math.log(m) / 1.099 for m in (2, 3, 4)}}, REPRODUCED),
        (ASYMPTOTE, {"maxout": {(m, 1): math.pi**2 / 12 / math.log(m) / 1.101 for m in (2, 3, 4)}}, DIRECTION),
        (ASYMPTOTE, {"maxout": {(32, 1): math.pi**2 / 12 / math.log(32) / 0.899}}, NOT),
        (MAXOUT, {"maxout": {(4, 1): 0.251}}, REPRODUCED),
        (MAXOUT, {"maxout": {(4, 1): 0.249}}, DIRECTION),
        (MAXOUT, {"maxout": {(32, 1): 0.031}}, NOT),
    ],
)
def test_maxout_and_its_bounds(claim, changes, outcome):
    assert judge(claim, **changes) == outcome


@pytest.mark.parametrize(("factor", "outcome"), [(1.039, REPRODUCED), (1.041, DIRECTION), (1.099, DIRECTION), (1.101, NOT)])
def test_exact_values_are_compared_with_drawn_networks(factor, outcome):
    """The standard error of every point is 1 %."""
    assert judge(EXACT, inner={(2, 1): 0.5 * factor}) == outcome


@pytest.mark.parametrize("method", CELLS)
def test_networks_of_the_recipe_have_the_exact_gain(method):
    """Two layers of width 96: within 4 standard errors, which are below 5 %."""
    size = 0.5 if "dropout" in method else 4
    found = sample_response_variance(lambda: build_network(method, size, 96, 2), 96, networks=40)
    exact = compute_variance_gain(describe_response(method, size), 2, "relu")
    assert found.error < 0.05 * exact
    assert abs(found.value - exact) < 4 * found.error


def test_an_ordinary_network_keeps_the_variance_at_one():
    found = sample_response_variance(lambda: build_network("ordinary", 1, 96, 2), 96, networks=60)
    assert abs(found.value - 1) < 4 * found.error < 0.2


def test_the_page_tells_that_the_initialisation_cancels_the_reduction():
    cells = {name: {"found": cell} for name, cell in build_found().items()}
    assert "4 layers of IENs have 1.00 times the variance" in list_findings({"inner/figure-2": {"cells": cells}})[0]
    assert list_findings({}) == []


def test_the_tables_have_no_recorded_results_yet():
    """docs/inner.md says so: a recorded table changes that page, too."""
    recorded = Path(__file__).parents[3] / "papers" / "inner" / "results"
    assert [file.name for file in recorded.glob("*.cpu.json")] == ["figure-2.cpu.json"]
