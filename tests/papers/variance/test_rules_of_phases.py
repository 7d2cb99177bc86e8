"""The rules of figures 3 and 8: numbers just inside and just outside each threshold give the outcome that the rule states."""

import pytest

from pluribus.papers.variance import phase_figures

from .rules import DIRECTION, NOT, NOT_DECIDED, REPRODUCED, judge, over_seeds


def phases(rows, transition=None):
    """Rows of (mean, average, zero-mean average), the first before training."""
    keys = ("mean", "average", "zero-mean average")
    rows = [{"epoch": epoch, "log_alpha": {"a": 0.0}} | dict(zip(keys, row, strict=True)) for epoch, row in enumerate(rows)]
    return {"phases": rows, "chance": 0.1, "transition": transition}


def figure_3(mean=0.1, average=0.9, zero_mean=0.9, first=0.1, transition=(1, 3), learnt=0.9, **own):
    rows = [(0.1, 0.1, 0.1), (learnt, 0.9, first), (0.5, 0.9, 0.5), (mean, average, zero_mean)]
    cell = phases(rows, transition)
    usual = phases([(0.1, 0.1, 0.1), (0.9, 0.9, 0.1), (0.5, 0.9, 0.5), (0.1, 0.9, 0.9)], [1, 3])
    found = over_seeds({"LeNet-5": usual}, **own)
    found |= {list(found)[-1]: found[list(found)[-1]] | cell}  # every seed counts, so the last one decides
    return found | over_seeds({"LeNet-5, log α twice as fast": usual})


@pytest.mark.parametrize(("learnt", "outcome"), [(0.8801, REPRODUCED), (0.8799, NOT_DECIDED)])
def test_a_transition_is_judged_only_if_the_means_answered_first(learnt, outcome):
    assert judge("figure-3", figure_3(learnt=learnt), 2) == outcome


@pytest.mark.parametrize(("average", "count"), [(0.9, 1), (0.8101, 1), (0.8099, 0)])
def test_epochs_in_which_the_average_has_not_been_learnt_do_not_count(average, count):
    cell = phases([(0.1, 0.1, 0.1), (average, average, 0.1), (0.1, 0.9, 0.1)])
    assert phase_figures.count_mean_epochs(cell) == count


@pytest.mark.parametrize(
    ("transition", "mean", "outcome"),
    [([1, 3], 0.1, REPRODUCED), ([1, 3], 0.8, REPRODUCED), (None, 0.4499, DIRECTION), (None, 0.4501, NOT)],
)
def test_the_mean_falls_to_chance(transition, mean, outcome):
    assert judge("figure-3", figure_3(mean, transition=transition), 0) == outcome


@pytest.mark.parametrize(
    ("average", "outcome"), [(0.8801, REPRODUCED), (0.8799, DIRECTION), (0.8101, DIRECTION), (0.8099, NOT)]
)
def test_the_average_does_not_notice(average, outcome):
    assert judge("figure-3", figure_3(average=average), 1) == outcome


@pytest.mark.parametrize(
    ("rows", "is_kept"),
    [
        ([(0.8801, 0.9), (0.5, 0.8801)], True),
        ([(0.8799, 0.9), (0.5, 0.9)], False),  # the mean was never like the average
        ([(0.9, 0.9), (0.8801, 0.9)], False),  # it still is at the end
        ([(0.9, 0.9), (0.8799, 0.9)], True),
        ([(0.9, 0.95), (0.9, 0.9), (0.5, 0.9299)], False),  # the best before counts, not the last
        ([(0.9, 0.9), (0.5, 0.8799), (0.5, 0.9)], False),  # every epoch counts, not the last alone
        ([(0.9, 0.9), (0.5, 0.95), (0.5, 0.925)], True),  # the best afterwards does not count
    ],
)
def test_the_average_is_kept_if_it_never_loses_two_points(rows, is_kept):
    cell = phases([(0.1, 0.1, 0.1), *((mean, average, 0.1) for mean, average in rows)])
    assert phase_figures.is_average_kept(cell) == is_kept


@pytest.mark.parametrize(
    ("first", "zero_mean", "outcome"),
    [
        (0.45, 0.8901, REPRODUCED),
        (0.4501, 0.8901, DIRECTION),
        (0.1, 0.8899, DIRECTION),
        (0.1, 0.8501, DIRECTION),
        (0.1, 0.8499, NOT),
    ],
)
def test_zero_mean_draws_are_at_chance_first_and_like_the_average_in_the_end(first, zero_mean, outcome):
    assert judge("figure-3", figure_3(first=first, zero_mean=zero_mean), 2) == outcome


PRIORS = ["log-uniform", "student-t", "ard"]


def figure_8(ends, mean=0.1, zero_mean=0.9, learnt=0.9, **own):
    found = {
        prior: phases([(0.1, 0.1, 0.1), (learnt, 0.9, 0.1), (mean, 0.9, zero_mean)], None if end is None else [1, end])
        for prior, end in zip(PRIORS, ends, strict=True)
    }
    return over_seeds(found | {f"{prior}, log α twice as fast": found[prior] for prior in PRIORS}, **own)


@pytest.mark.parametrize(("base", "outcome"), [(0.85, REPRODUCED), (0.8499, NOT_DECIDED)])
def test_priors_are_compared_only_on_networks_that_are_85_percent_right(base, outcome):
    assert [judge("figure-8", figure_8((5, 9, 8), base=base), claim) for claim in range(4)] == [outcome] * 4


@pytest.mark.parametrize(("learnt", "outcome"), [(0.88, REPRODUCED), (0.8799, NOT_DECIDED)])
def test_priors_are_compared_only_if_the_means_answered_first(learnt, outcome):
    assert [judge("figure-8", figure_8((5, 9, 8), learnt=learnt), claim) for claim in range(4)] == [outcome] * 4


@pytest.mark.parametrize(("sooner", "outcome"), [(0, REPRODUCED), (1, DIRECTION), (2, NOT)])
def test_the_transition_ends_last_under_students_prior_in_every_seed_or_in_most(sooner, outcome):
    found = figure_8((5, 9, 8))
    for seed in range(1, sooner + 1):
        found[f"student-t, seed {seed}"] = found[f"student-t, seed {seed}"] | {"transition": [1, 4]}
    assert judge("figure-8", found, 3) == outcome


@pytest.mark.parametrize("prior", range(3))
@pytest.mark.parametrize(
    ("end", "mean", "zero_mean", "outcome"),
    [
        (5, 0.8, 0.8801, REPRODUCED),
        (5, 0.4499, 0.8799, DIRECTION),
        (None, 0.4499, 0.9, DIRECTION),
        (None, 0.4501, 0.9, NOT),
        (5, 0.4501, 0.8799, NOT),
    ],
)
def test_the_network_becomes_a_variance_network(prior, end, mean, zero_mean, outcome):
    assert judge("figure-8", figure_8((end, end, end), mean=mean, zero_mean=zero_mean), prior) == outcome


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ((5, 9, 8), REPRODUCED),
        ((5, 8, 8), NOT),
        ((9, 8, 5), NOT),
        ((5, None, 8), REPRODUCED),
        ((None, None, 8), NOT),
        ((5, 9, None), NOT),
        ((None, None, None), NOT),
    ],
)
def test_the_transition_ends_last_under_students_prior(ends, outcome):
    assert judge("figure-8", figure_8(ends), 3) == outcome
