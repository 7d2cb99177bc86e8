"""The rules of figures: numbers just inside and just outside each threshold give the outcome that the rule states."""

import numpy as np
import pytest

from pluribus.papers.variance import figure_1
from pluribus.papers.variance.kappa import BINS, histogram_median

from .rules import DIRECTION, NOT, NOT_DECIDED, REPRODUCED, judge, over_seeds
from .test_rules_of_phases import phases

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
    found = {f"seed {i}": seed(value) for i, value in enumerate(correlations * 5)}
    assert judge("figure-1", found, 0) == outcome


@pytest.mark.parametrize(
    ("same", "different", "outcome"),
    [(0.99, 0.99, REPRODUCED), (0.9899, 0.99, DIRECTION), (0.99, 0.9899, DIRECTION), (0.9899, 0.9899, NOT)],
)
def test_the_best_seed_of_each_kind_reaches_99_percent(same, different, outcome):
    found = {"a": seed(0.95, same), "b": seed(0.2, different), "c": seed(0.95, 0.8), "d": seed(0.2, 0.8)}
    found |= {f"mixed {i}": seed(0.7, 0.8) for i in range(6)}
    assert judge("figure-1", found, 1) == outcome


@pytest.mark.parametrize(("learnt", "outcome"), [(10, REPRODUCED), (9, NOT_DECIDED)])
def test_seeds_are_compared_only_if_ten_have_learnt(learnt, outcome):
    found = {str(i): seed(0.95 if i % 2 else 0.2) for i in range(learnt)} | {"failed": seed(1.0, 0.6999)}
    assert [judge("figure-1", found, claim) for claim in (0, 1)] == [outcome] * 2


@pytest.mark.parametrize(("same", "outcome"), [(2, REPRODUCED), (1, NOT_DECIDED)])
def test_the_accuracy_of_either_kind_is_that_of_two_seeds_or_more(same, outcome):
    found = {str(i): seed(0.95 if i < same else 0.2) for i in range(12)}
    assert judge("figure-1", found, 1) == outcome


# --- figures 4 and 5 --------------------------------------------------------------------------------------------------


def figure_4(singles=(0.98, 0.99), averages=(0.995, 0.996), **own):
    cells = {f"average {i}": {"singles": list(singles), "average": average} for i, average in enumerate(averages)}
    return over_seeds(cells, **own)


@pytest.mark.parametrize(("worst", "outcome"), [(0.97, REPRODUCED), (0.9699, DIRECTION), (0.9, DIRECTION), (0.8999, NOT)])
def test_every_weight_sample_is_accurate(worst, outcome):
    assert judge("figure-4", figure_4((0.99, worst)), 0) == outcome


@pytest.mark.parametrize(
    ("worst", "outcome"), [(0.9901, REPRODUCED), (0.99, DIRECTION), (0.9851, DIRECTION), (0.985, NOT), (0.97, NOT)]
)
def test_the_worst_average_is_better_than_the_best_sample(worst, outcome):
    assert judge("figure-4", figure_4(averages=(0.999, worst)), 1) == outcome


def test_an_average_is_compared_with_the_samples_of_its_own_network():
    found = figure_4()
    found["average 0, seed 3"] = found["average 0, seed 3"] | {"singles": [0.999], "average": 0.9991}
    found["average 1, seed 3"] = found["average 1, seed 3"] | {"singles": [0.999], "average": 0.9991}
    assert judge("figure-4", found, 1) == REPRODUCED
    found["average 1, seed 3"] = found["average 1, seed 3"] | {"average": 0.998}
    assert judge("figure-4", found, 1) == NOT


def pruned(*table, rows=10_000):
    table = [
        {"sparsity": share, "share": share, "many": value, "zero": value, "threshold": 0.1}
        for share, value in ((0.0, 0.99), *table)
    ]
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
    assert judge("figure-5", over_seeds({"pruning": pruned(*table)}), 0) == outcome
    one_other = over_seeds({"pruning": pruned((0.99, 0.99))}, (1, 2)) | over_seeds({"pruning": pruned(*table)}, (3,))
    assert judge("figure-5", one_other, 0) == outcome


# --- figure 9 and κ ---------------------------------------------------------------------------------------------------


def figure_9(median=0.6, largest=0.0, **own):
    cell = {"levels": {"median": median, "quartiles": [0, 1]}, "largest_mean": largest}
    usual = {"levels": {"median": 0.9, "quartiles": [0, 1]}, "largest_mean": 0.0}
    found = over_seeds({"densities": usual}, **own)
    return found | {list(found)[-1]: found[list(found)[-1]] | cell}


@pytest.mark.parametrize(("median", "outcome"), [(0.5001, REPRODUCED), (0.5, DIRECTION), (0.2501, DIRECTION), (0.25, NOT)])
def test_classes_explain_the_spread_of_half_of_the_neurons(median, outcome):
    assert judge("figure-9", figure_9(median), 0) == outcome


@pytest.mark.parametrize(("largest", "outcome"), [(0.0, REPRODUCED), (1e-30, NOT)])
def test_responses_have_mean_zero_exactly(largest, outcome):
    assert judge("figure-9", figure_9(1.0, largest), 1) == outcome


def kappa(above=(0, 0, 0, 5, 5), transition=(4, 6), medians=(10, 14), share=0.97, means=(0.9, 0.1), **own):
    """κ of five epochs; `medians` are the bins (a quarter of a decade each) of the first epoch's and of the highest median."""
    counts = [[0] * 72 for _ in above]
    for epoch, row in enumerate(counts):
        row[medians[0] if epoch in (0, len(above) - 1) else medians[1]] = 100
    watched = [{"epoch": i, "above": n, "counts": row} for i, (n, row) in enumerate(zip(above, counts, strict=True), 1)]
    cell = pruned((share, 0.99), (0.999, 0.5))
    for row in cell["table"]:
        row["mean"] = 0.5 if row["share"] else 0.99  # replacing by means has no rule
    rows = [(0.1, 0.1, 0.1), *((mean, 0.9, 0.5) for mean in means)]
    cell |= phases(rows, None if transition is None else list(transition)) | {"watched": watched}
    return over_seeds({"curvature": cell, "curvature, log α twice as fast": cell}, **own)


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


@pytest.mark.parametrize(("means", "outcome"), [((0.88, 0.1), REPRODUCED), ((0.8799, 0.1), NOT_DECIDED)])
def test_the_transition_of_kappa_is_judged_only_if_the_means_answered_first(means, outcome):
    assert [judge("kappa", kappa(means=means), claim) for claim in range(3)] == [REPRODUCED, outcome, outcome]


@pytest.mark.parametrize(("counts", "bin_"), [((49, 2, 49), 1), ((51, 0, 49), 0), ((49, 0, 51), 2)])
def test_half_of_the_weights_are_up_to_the_median_of_a_histogram(counts, bin_):
    assert histogram_median([*counts, *[0] * 69]) == BINS[bin_]
