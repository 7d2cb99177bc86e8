"""The rules of figures: numbers just inside and just outside each threshold give the outcome that the rule states."""

import numpy as np
import pytest

from pluribus.papers.variance import figure_1
from pluribus.papers.variance.figure_6 import student_interval
from pluribus.papers.variance.kappa import BINS, histogram_median

from .rules import DIRECTION, NOT, REPRODUCED, judge

# --- figure 1 ---------------------------------------------------------------------------------------------------------


def seed(correlation, many=0.99, shift=0.0):
    """A seed whose two neurons have log σ with this correlation over the four classes."""
    first, other = np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    second = correlation * first + (1 - correlation**2) ** 0.5 * other
    return {"many": many, "one": 0.9, "log_std": (np.stack([first, second], 1) + shift).tolist()}


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (seed(0.9001), "same"),
        (seed(0.8999), "mixed"),
        (seed(0.5001), "mixed"),
        (seed(0.4999), "different"),
        (seed(-0.9999), "different"),
        (seed(1.0, many=0.7), "same"),
        (seed(1.0, many=0.6999), "failed"),
    ],
)
def test_a_seed_is_classified_by_the_correlation_of_its_neurons(cell, kind):
    assert figure_1.classify_seed(cell) == kind


def test_a_sigma_below_five_hundredths_counts_as_that():
    low, high = np.log(0.05), 1.0
    cell = {"many": 1.0, "log_std": [[high, high], [high, high], [low, low - 5], [low - 5, low]]}
    assert figure_1.correlate_neurons(cell) == pytest.approx(1.0)
    cell["log_std"][2][1], cell["log_std"][3][0] = low + 1.0, low
    assert figure_1.correlate_neurons(cell) < 0.99


@pytest.mark.parametrize(
    ("correlations", "outcome"),
    [((0.95, 0.2), REPRODUCED), ((0.95, 0.7), DIRECTION), ((0.2, 0.7), DIRECTION), ((0.7, 0.7), NOT)],
)
def test_seeds_of_both_kinds_are_found(correlations, outcome):
    assert judge("figure-1", {f"seed {i}": seed(value) for i, value in enumerate(correlations)}, 0) == outcome


@pytest.mark.parametrize(
    ("same", "different", "outcome"),
    [(0.99, 0.99, REPRODUCED), (0.9899, 0.99, DIRECTION), (0.99, 0.9899, DIRECTION), (0.9899, 0.9899, NOT)],
)
def test_the_best_seed_of_each_kind_reaches_99_percent(same, different, outcome):
    found = {"a": seed(0.95, same), "b": seed(0.2, different), "c": seed(0.95, 0.8), "d": seed(0.2, 0.8)}
    assert judge("figure-1", found, 1) == outcome


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
    return {"curves": {"log_alpha": [-10.0, 0.0, 10.0], "curves": {name: curve.tolist() for name, curve in curves.items()}}}


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


# --- figures 4 and 5 --------------------------------------------------------------------------------------------------


def figure_4(singles=(0.98, 0.99), averages=(0.995, 0.996)):
    return {f"average {i}": {"singles": list(singles), "average": average} for i, average in enumerate(averages)}


@pytest.mark.parametrize(("worst", "outcome"), [(0.97, REPRODUCED), (0.9699, DIRECTION), (0.9, DIRECTION), (0.8999, NOT)])
def test_every_weight_sample_is_accurate(worst, outcome):
    assert judge("figure-4", figure_4((0.99, worst)), 0) == outcome


@pytest.mark.parametrize(
    ("worst", "outcome"), [(0.9901, REPRODUCED), (0.99, DIRECTION), (0.9851, DIRECTION), (0.985, NOT), (0.97, NOT)]
)
def test_the_worst_average_is_better_than_the_best_sample(worst, outcome):
    assert judge("figure-4", figure_4(averages=(0.999, worst)), 1) == outcome


def pruned(*table, rows=10_000):
    table = [{"sparsity": share, "share": share, "many": value, "zero": value} for share, value in ((0.0, 0.99), *table)]
    return {"table": table, "rows": rows, "weights": 1000}


@pytest.mark.parametrize(
    ("table", "outcome"),
    [
        ([(0.97, 0.99)], REPRODUCED),
        ([(0.9699, 0.99)], DIRECTION),
        ([(0.97, 0.9881)], REPRODUCED),  # the half width at 99 % of 10,000 rows is 0.00196
        ([(0.97, 0.9879)], NOT),
        ([(0.5, 0.99), (0.97, 0.9)], DIRECTION),
        ([(0.4999, 0.99), (0.97, 0.9)], NOT),
        ([(0.6, 0.9), (0.98, 0.99)], NOT),  # at every smaller share too
    ],
)
def test_weights_can_be_zero_at_no_loss(table, outcome):
    assert judge("figure-5", {"pruning": pruned(*table)}, 0) == outcome


# --- figure 6 ---------------------------------------------------------------------------------------------------------

SPREAD = np.array([-1, 1, -1, 1, -1, 1, -1, 1, 0])  # mean 0; the standard deviation over nine seeds is 1
HALF = 2.306 / 3
"""Half of the interval of a mean of nine differences with standard deviation 1, by Student's t."""


def figure_6(world="CartPole", policy="deterministic", early=-100.0, late=100.0):
    """Scores of twenty episodes: differences of the variance policy from one other have these means and standard deviation 1.

    The episodes beside the first six and the last two have scores that would turn the outcome round.
    """
    found = {}
    for each in ("CartPole", "Acrobot"):
        for own in ("deterministic", "parameter noise", "variance"):
            found[f"{each}, {own}"] = np.zeros((9, 20))
        found[f"{each}, variance"][:, :6] += -100 + SPREAD[:, None]
        found[f"{each}, variance"][:, 6:18] = np.linspace(1e4, -1e4, 12)
        found[f"{each}, variance"][:, 18:] += 100 + SPREAD[:, None]
    found[f"{world}, {policy}"][:, :6] -= early + 100
    found[f"{world}, {policy}"][:, 18:] -= late - 100
    return {name: {"rate": 1e-3, "scores": scores.tolist()} for name, scores in found.items()}


def test_the_interval_is_students():
    mean, low, high = student_interval(5 + SPREAD)
    assert (mean, low, high) == pytest.approx((5, 5 - HALF, 5 + HALF))


@pytest.mark.parametrize("world", ["CartPole", "Acrobot"])
@pytest.mark.parametrize("policy", ["deterministic", "parameter noise"])
@pytest.mark.parametrize(
    ("late", "outcome"), [(HALF + 1e-3, REPRODUCED), (HALF - 1e-3, DIRECTION), (1e-3, DIRECTION), (-1e-3, NOT)]
)
def test_the_variance_policy_ends_higher_than_both_others(world, policy, late, outcome):
    claim = 0 if world == "CartPole" else 2
    assert judge("figure-6", figure_6(world, policy, late=late), claim) == outcome
    assert judge("figure-6", figure_6(world, policy, late=late), 2 - claim) == REPRODUCED


@pytest.mark.parametrize("world", ["CartPole", "Acrobot"])
@pytest.mark.parametrize("policy", ["deterministic", "parameter noise"])
@pytest.mark.parametrize(
    ("early", "outcome"), [(-HALF - 1e-3, REPRODUCED), (-HALF + 1e-3, DIRECTION), (-1e-3, DIRECTION), (1e-3, NOT)]
)
def test_the_variance_policy_is_slower_than_both_others(world, policy, early, outcome):
    claim = 1 if world == "CartPole" else 3
    assert judge("figure-6", figure_6(world, policy, early=early), claim) == outcome


# --- figure 7 ---------------------------------------------------------------------------------------------------------


def figure_7(through="one draw", entropies=None, **success):
    """Mean success over two iterations; the entropies are gains over that of clean images."""
    own = {"deterministic": 0.6, "dropout": 0.5, "deep_ensemble": 0.5, "variance": 0.4, "variance_ensemble": 0.3} | success
    gains = {"variance": 0.1, "variance ensemble": 0.1} | (entropies or {})
    found = {}
    for key, value in own.items():
        method = key.replace("_", " ")
        for way in ("one draw", "average"):
            mean = value if way == through or method in ("deterministic", "deep ensemble") else 0.45
            entropy = [1.0, 5.0, 1.0 + gains.get(method, 0.0)]
            found[f"{method}, {way}"] = {"success": [mean - 0.1, mean + 0.1], "entropy": entropy, "accuracy": 0.9}
    return found


@pytest.mark.parametrize(("claim", "through"), [(0, "one draw"), (1, "average")])
@pytest.mark.parametrize(
    ("success", "outcome"),
    [
        ({}, REPRODUCED),
        ({"variance_ensemble": 0.3999}, REPRODUCED),
        ({"variance_ensemble": 0.4001}, NOT),  # not the lowest
        ({"variance": 0.4999}, REPRODUCED),
        ({"variance": 0.5001}, DIRECTION),
        ({"deterministic": 0.3999}, DIRECTION),
        ({"dropout": 0.3999}, DIRECTION),
        ({"deep_ensemble": 0.3999}, DIRECTION),
        ({"dropout": 0.3001}, DIRECTION),
        ({"dropout": 0.2999}, NOT),
    ],
)
def test_variance_networks_are_attacked_least(claim, through, success, outcome):
    assert judge("figure-7", figure_7(through, **success), claim) == outcome


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [
        ({"variance": 1e-3}, REPRODUCED),
        ({"variance": -1e-3}, NOT),
        ({"variance ensemble": 1e-3}, REPRODUCED),
        ({"variance ensemble": 0.0}, NOT),
        ({"dropout": -1e-3}, REPRODUCED),
        ({"dropout": 1e-3}, DIRECTION),
        ({"deterministic": 1e-3}, DIRECTION),
        ({"deep ensemble": 1e-3}, DIRECTION),
    ],
)
def test_only_variance_networks_are_less_sure_of_attacked_images(gains, outcome):
    assert judge("figure-7", figure_7(entropies=gains), 2) == outcome


# --- figure 9 and κ ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("median", "outcome"), [(0.5001, REPRODUCED), (0.5, DIRECTION), (0.2501, DIRECTION), (0.25, NOT)])
def test_classes_explain_the_spread_of_half_of_the_neurons(median, outcome):
    found = {"densities": {"levels": {"median": median, "quartiles": [0, 1]}, "largest_mean": 0.0}}
    assert judge("figure-9", found, 0) == outcome


@pytest.mark.parametrize(("largest", "outcome"), [(0.0, REPRODUCED), (1e-30, NOT)])
def test_responses_have_mean_zero_exactly(largest, outcome):
    found = {"densities": {"levels": {"median": 1.0, "quartiles": [0, 1]}, "largest_mean": largest}}
    assert judge("figure-9", found, 1) == outcome


def kappa(above=(0, 0, 0, 5, 5), transition=(4, 6), medians=(10, 14), share=0.97):
    """κ of five epochs; `medians` are the bins (a quarter of a decade each) of the first epoch's and of the highest median."""
    counts = [[0] * 72 for _ in above]
    for epoch, row in enumerate(counts):
        row[medians[0] if epoch in (0, len(above) - 1) else medians[1]] = 100
    watched = [{"epoch": i, "above": n, "counts": row} for i, (n, row) in enumerate(zip(above, counts, strict=True), 1)]
    own = pruned((share, 0.99), (0.999, 0.5))
    for row in own["table"]:
        row["mean"] = 0.5 if row["share"] else 0.99  # replacing by means has no rule
    return {"curvature": own | {"watched": watched, "transition": None if transition is None else list(transition)}}


@pytest.mark.parametrize(("share", "outcome"), [(0.97, REPRODUCED), (0.9699, DIRECTION), (0.5, DIRECTION), (0.4999, NOT)])
def test_weights_with_a_small_kappa_can_be_zeroed(share, outcome):
    assert judge("kappa", kappa(share=share), 0) == outcome


@pytest.mark.parametrize(
    ("above", "transition", "outcome"),
    [
        ((0, 0, 0, 1, 1), (4, 6), REPRODUCED),
        ((0, 0, 0, 0, 1), (2, 5), REPRODUCED),
        ((0, 0, 0, 0, 1), (1, 5), DIRECTION),
        ((0, 0, 0, 0, 1), (1, 4), NOT),
        ((1, 1, 1, 1, 1), (4, 6), REPRODUCED),
        ((1, 1, 1, 1, 1), (5, 6), DIRECTION),
        ((0, 0, 0, 0, 0), (4, 6), NOT),
        ((0, 0, 0, 1, 1), None, NOT),
    ],
)
def test_the_transition_starts_with_the_first_large_kappa(above, transition, outcome):
    assert judge("kappa", kappa(above, transition), 1) == outcome


@pytest.mark.parametrize(
    ("medians", "outcome"), [((10, 14), REPRODUCED), ((10, 13), DIRECTION), ((10, 11), DIRECTION), ((10, 10), NOT)]
)
def test_the_histogram_of_kappa_shifts_by_a_decade(medians, outcome):
    assert judge("kappa", kappa(medians=medians), 2) == outcome


@pytest.mark.parametrize(("counts", "bin_"), [((49, 2, 49), 1), ((51, 0, 49), 0), ((49, 0, 51), 2)])
def test_half_of_the_weights_are_up_to_the_median_of_a_histogram(counts, bin_):
    assert histogram_median([*counts, *[0] * 69]) == BINS[bin_]
