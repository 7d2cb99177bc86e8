"""The rules of theorem 1 and figure 2: numbers just inside and just outside each threshold give the stated outcome."""

import numpy as np
import pytest

from pluribus.papers.variance.discrepancy import mmd, mmd_bound, prediction_bound
from pluribus.papers.variance.theorem_1 import LAYERS, REACHED

from .rules import DIRECTION, NOT, NOT_DECIDED, REPRODUCED, judge

# --- figure 2 ---------------------------------------------------------------------------------------------------------


def figure_2(rising="", small=0.0, error=0.0):
    exact = np.array([3.0, 2.0, 1.0])
    curves = {
        "log-uniform, exact": exact,
        "log-uniform, approximation": exact + np.array([0, error, 0]),
        "ARD": exact,
        "Student's t, ν = 1e-16": exact - exact[-1] + np.array([small, 0, 0]),
        "Student's t, ν = 1": exact,
    }
    if rising:
        curves[rising] = curves[rising] + np.array([0, 0, 1.0001])
    return {
        "curves": {"log_alpha": [-10.0, 0.0, 10.0] * 67, "curves": {name: curve.tolist() for name, curve in curves.items()}}
    }


@pytest.mark.parametrize(
    ("rising", "outcome"),
    [
        ("", REPRODUCED),
        ("log-uniform, exact", NOT),
        ("log-uniform, approximation", NOT),
        ("ARD", NOT),
        ("Student's t, ν = 1e-16", NOT),
        ("Student's t, ν = 1", REPRODUCED),
    ],
)
def test_the_divergence_falls_for_the_three_priors(rising, outcome):
    assert judge("figure-2", figure_2(rising), 0) == outcome


@pytest.mark.parametrize(("small", "outcome"), [(0.99e-6, REPRODUCED), (1.01e-6, NOT), (-0.99e-6, REPRODUCED), (-1.01e-6, NOT)])
def test_students_prior_with_small_nu_is_the_log_uniform_one(small, outcome):
    assert judge("figure-2", figure_2(small=small), 1) == outcome


@pytest.mark.parametrize(("error", "outcome"), [(0.0099, REPRODUCED), (0.0101, NOT), (-0.0099, REPRODUCED), (-0.0101, NOT)])
def test_the_approximation_is_within_a_hundredth(error, outcome):
    assert judge("figure-2", figure_2(error=error), 2) == outcome


@pytest.mark.parametrize(("points", "outcome"), [(200, REPRODUCED), (199, NOT_DECIDED)])
def test_the_divergence_is_judged_at_many_points(points, outcome):
    found = figure_2()
    found["curves"]["log_alpha"] = found["curves"]["log_alpha"][:points]
    assert [judge("figure-2", found, claim) for claim in range(3)] == [outcome] * 3


# --- theorem 1 --------------------------------------------------------------------------------------------------------


def theorem_1(reached=(), seen=0.0, ratio=1.0, vacuous=None):
    """`reached` are predictions of the layers at the α of the paper; `ratio` is the smallest bound over the exact value."""
    table = []
    for name, (weights, points) in LAYERS.items():
        for log_alpha in points:
            row = {"layer": name, "log_alpha": log_alpha, "exact": mmd(log_alpha, weights)}
            row |= {"bound": mmd_bound(log_alpha, weights), "prediction": prediction_bound(log_alpha, weights)}
            table.append(row | {"vacuous": row["bound"] >= 2})
    table[0]["bound"] = ratio * table[0]["exact"]
    for row in table:
        place = (row["layer"], row["log_alpha"])
        if reached and place in REACHED:
            row["prediction"] = reached[REACHED.index(place)]
            row["vacuous"] = vacuous is not None and vacuous > REACHED.index(place)
    drawn = [{"seen": 0.5, "exact": 0.5, "error": 0.001}, {"seen": 0.5 + seen, "exact": 0.5, "error": 0.001}]
    return {"theory": {"table": table, "drawn": drawn}}


@pytest.mark.parametrize(("ratio", "outcome"), [(1.0, REPRODUCED), (1.0001, REPRODUCED), (0.9999, NOT)])
def test_the_bound_is_above_the_exact_supremum(ratio, outcome):
    assert judge("theorem-1", theorem_1(ratio=ratio), 0) == outcome


@pytest.mark.parametrize(("seen", "outcome"), [(0.00399, REPRODUCED), (-0.00399, REPRODUCED), (0.00401, NOT), (-0.00401, NOT)])
def test_the_supremum_is_attained_within_four_standard_errors(seen, outcome):
    assert judge("theorem-1", theorem_1(seen=seen), 1) == outcome


@pytest.mark.parametrize(
    ("reached", "vacuous", "outcome"),
    [
        ((0.01, 0.001, 0.001), None, REPRODUCED),
        ((0.001, 0.0101, 0.001), None, DIRECTION),
        ((0.001, 0.001, 0.001), 1, DIRECTION),
        ((0.5, 0.5, 0.5), 2, DIRECTION),
        ((0.5, 0.5, 0.5), 3, NOT),
    ],
)
def test_the_means_can_be_dropped_where_probabilities_change_by_at_most_one_point(reached, vacuous, outcome):
    assert judge("theorem-1", theorem_1(reached, vacuous=vacuous), 2) == outcome


@pytest.mark.parametrize(("error", "outcome"), [(0.005, REPRODUCED), (0.00501, NOT_DECIDED)])
def test_a_supremum_is_compared_with_draws_that_are_precise(error, outcome):
    found = theorem_1()
    for row in found["theory"]["drawn"]:
        row["error"] = error
    assert judge("theorem-1", found, 1) == outcome


def test_the_bound_is_judged_on_both_sides_of_where_it_is_vacuous():
    for kept in (True, False):
        found = theorem_1()
        found["theory"]["table"] = [row for row in found["theory"]["table"] if row["vacuous"] == kept]
        assert judge("theorem-1", found, 0) == NOT_DECIDED


def test_the_claim_on_predictions_needs_all_layers_of_the_paper():
    found = theorem_1()
    found["theory"]["table"] = [row for row in found["theory"]["table"] if (row["layer"], row["log_alpha"]) != REACHED[0]]
    assert judge("theorem-1", found, 2) == NOT_DECIDED
