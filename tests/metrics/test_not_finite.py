"""One answer that is no number: no label, and no score that looks like one."""

import math

import pytest
import torch

from pluribus import Predictive, analysis, metrics
from pluribus.analysis.scores import create_scores
from pluribus.comparison.statistics import combine_seeds, pool_reliability, summarize_seeds
from pluribus.core.files import format_json
from pluribus.metrics.intervals import bootstrap
from pluribus.metrics.ood_detection import auroc, fpr95
from pluribus.metrics.streaming import Tally

Y = torch.tensor([0, 1, 2, 0])


def answers(*broken, members=3, value=torch.nan):
    """Four rows of three classes; the answer of one member to the `broken` rows holds `value`."""
    outputs = torch.randn(members, 4, 3, generator=torch.Generator().manual_seed(0))
    outputs[-1, list(broken), 1] = value
    return Predictive(outputs)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("members", [1, 3])
def test_a_row_without_a_finite_answer_has_no_label(members, value):
    p = answers(2, members=members, value=value)
    assert p.is_finite.tolist() == [True, True, False, True]
    assert p.labels[2] == -1
    assert (p.labels[[0, 1, 3]] >= 0).all()
    for column in (p.confidence, p.entropy, p.mutual_information, p.disagreement, p.nll(Y)):
        assert column.isnan().tolist() == [False, False, True, False]


def test_classes_that_are_excluded_by_minus_infinity_are_no_damage():
    p = answers(0, 1, value=-torch.inf)
    assert p.is_finite.all()
    assert (p.labels >= 0).all()
    single = Predictive(torch.tensor([[[torch.inf], [-torch.inf]]]))
    assert single.is_finite.all()
    assert single.labels.tolist() == [1, 0]


def test_images_of_labels_lose_only_the_places_that_are_broken():
    outputs = torch.zeros(2, 2, 3, 4, 4)
    outputs[0, 1, 0, 2, 2] = torch.nan
    p = Predictive(outputs)
    assert p.is_finite.tolist() == [True, False]
    assert (p.labels == -1).sum() == 1
    assert p.labels[1, 2, 2] == -1


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_regression_is_finite_where_its_mean_is(value):
    outputs = torch.zeros(2, 3, 1)
    outputs[1, 0] = value
    assert Predictive(outputs, "regression").is_finite.tolist() == [False, True, True]
    assert Predictive(outputs.squeeze(2), "regression").is_finite.tolist() == [False, True, True]


CLASSIFICATION = [
    *(metrics.accuracy, metrics.nll, metrics.ece, metrics.adaptive_ece, metrics.classwise_ece, metrics.brier, metrics.aurc),
    *(metrics.accuracy_at_coverage, analysis.normalised_disagreement, analysis.error_correlation),
]


@pytest.mark.parametrize("score", CLASSIFICATION, ids=lambda score: score.__name__)
def test_every_score_of_a_classification_is_nan(score):
    assert math.isfinite(score(answers(), Y))
    assert math.isnan(score(answers(2), Y))
    assert math.isnan(score(answers(0, 1, 2, 3), Y))


@pytest.mark.parametrize(
    "score", [metrics.rmse, metrics.gaussian_nll, metrics.crps, metrics.coverage], ids=lambda s: s.__name__
)
def test_every_score_of_a_regression_is_nan(score):
    outputs = torch.randn(3, 4, 1)
    assert math.isfinite(score(Predictive(outputs, "regression"), Y.float()))
    outputs[0, 2] = torch.nan
    assert math.isnan(score(Predictive(outputs, "regression"), Y.float()))


def test_detection_by_scores_that_are_nan_is_nan():
    sound, broken = torch.tensor([0.1, 0.2]), torch.tensor([0.3, torch.nan])
    for score in (auroc, fpr95):
        assert math.isnan(score(sound, broken))
        assert math.isnan(score(broken, sound))


def test_an_interval_of_nan_has_no_bounds():
    assert all(map(math.isnan, bootstrap(torch.tensor([1.0, 2.0, torch.nan]), draws=20)))


def test_sums_over_batches_know_how_many_rows_are_lost():
    tally = Tally("classification")
    tally.add(answers(), Y)
    tally.add(answers(1, 3), Y)
    assert tally.not_finite == 2
    assert all(map(math.isnan, tally.scores().values()))
    tally = Tally("regression")
    tally.add(Predictive(torch.tensor([[[1.0], [torch.inf]]]), "regression"), Y[:2].float())
    assert tally.not_finite == 1


@pytest.mark.parametrize("members", [1, 3])
def test_all_scores_of_an_evaluation_are_nan_and_its_rows_counted(members):
    kept = create_scores("classification")
    kept.add(answers(members=members), Y)
    kept.add(answers(2, members=members), Y)
    assert kept.not_finite == 1
    assert all(map(math.isnan, kept.scores().values()))
    assert all(map(math.isnan, kept.member_scores().values()))
    assert all(map(math.isnan, kept.risk_coverage()["risk"]))
    for interval in kept.intervals(draws=10).values():
        assert all(map(math.isnan, interval))
    found = kept.diversity()
    assert math.isnan(found["disagreement"])
    assert math.isnan(found["normalised_disagreement"])
    assert kept["answer"].tolist().count(-1) == 1


def test_all_scores_of_a_regression_are_nan_and_its_rows_counted():
    kept = create_scores("regression", noise=0.1)
    outputs = torch.randn(2, 4, 1)
    outputs[0, 1] = torch.nan
    kept.add(Predictive(outputs, "regression"), Y.float())
    assert kept.not_finite == 1
    assert all(map(math.isnan, kept.scores().values()))


# --- over seeds, from JSON, which has null for NaN --------------------------------------------------------------------


def judge(*broken):
    import json

    kept = create_scores("classification")
    kept.add(answers(*broken), Y)
    found = {"members": 3, "rows": 4, "not_finite": kept.not_finite, "scores": kept.scores(), "tempered": None}
    found |= {"member_scores": kept.member_scores(), "diversity": kept.diversity(), "reliability": kept.reliability()}
    return json.loads(format_json(found | {"risk_coverage": kept.risk_coverage(), "unsure": []}))


def test_seeds_without_finite_scores_make_the_mean_nan_and_not_an_error():
    found = combine_seeds({0: judge(), 1: judge(2)}, {})
    assert found["not_finite"] == 1
    assert all(math.isnan(score["mean"]) and math.isfinite(score["seeds"][0]) for score in found["scores"].values())
    assert all(map(math.isnan, found["risk_coverage"]["risk"]))
    assert math.isnan(summarize_seeds([0.5, None])["std"])
    assert math.isfinite(combine_seeds({0: judge(), 1: judge()}, {})["scores"]["nll"]["mean"])


def test_bins_that_hold_a_broken_row_are_not_averaged_as_zero():
    pooled = pool_reliability([judge()["reliability"], judge(2)["reliability"]])
    assert math.isnan(pooled["accuracy"][0])
    assert pooled["accuracy"].count(None) == pooled["count"].count(0)
