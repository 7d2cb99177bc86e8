"""Every score in one pass: what is added batch by batch is what the pure functions say of all rows at once."""

import pytest
import torch

from pluribus import metrics
from pluribus.analysis import diversity
from pluribus.analysis.scores import ClassificationScores, RegressionScores, create_scores
from pluribus.core.predictive import Predictive
from pluribus.metrics import calibration, regression, selective


def answers(members=3, rows=257, classes=4):
    return Predictive(2 * torch.randn(members, rows, classes).double()), torch.randint(classes, (rows,))


def added(kept, p, y, size=50):
    for start in range(0, len(y), size):
        kept.add(Predictive(p.outputs[:, start : start + size], p.task), y[start : start + size])
    return kept


@pytest.mark.parametrize("members", [1, 2, 5])
def test_scores_added_batch_by_batch_are_those_of_all_rows(members):
    p, y = answers(members)
    scores = added(ClassificationScores(), p, y).scores()
    expected = {
        "accuracy": metrics.accuracy(p, y),
        "nll": metrics.nll(p, y),
        "calibrated_nll": pytest.approx(metrics.calibrated_nll(p, y), rel=1e-6),  # kept in single precision
        "brier": calibration.brier(p, y),
        "ece": metrics.ece(p, y),
        "adaptive_ece": calibration.adaptive_ece(p, y),
        "classwise_ece": calibration.classwise_ece(p, y),
        "aurc": selective.aurc(p, y),
        "accuracy_at_80": selective.accuracy_at_coverage(p, y, 0.8),
    }
    assert scores.pop("calibrated_nll") == expected.pop("calibrated_nll")
    assert scores == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("members", [1, 2, 5])
def test_diversity_from_counts_is_that_of_all_rows(members):
    p, y = answers(members)
    assert added(ClassificationScores(), p, y).diversity() == pytest.approx(
        {
            "disagreement": diversity.disagreement(p),
            "normalised_disagreement": diversity.normalised_disagreement(p, y),
            "pairwise_kl": diversity.pairwise_kl(p),
            "error_correlation": diversity.error_correlation(p, y),
        },
        rel=1e-10,
    )


def test_a_member_that_is_always_right_has_no_correlation_with_the_others():
    y = torch.randint(3, (40,))
    right = 9 * torch.nn.functional.one_hot(y, 3).double()
    p = Predictive(torch.stack([right, torch.randn(40, 3).double(), torch.randn(40, 3).double()]))
    assert added(ClassificationScores(), p, y).diversity()["error_correlation"] == pytest.approx(
        diversity.error_correlation(p, y)
    )


def test_a_member_alone_is_judged_as_one_network():
    p, y = answers(members=3)
    alone = [Predictive(p.outputs[m : m + 1]) for m in range(3)]
    assert added(ClassificationScores(), p, y).member_scores() == pytest.approx(
        {
            "accuracy": sum(metrics.accuracy(one, y) for one in alone) / 3,
            "nll": sum(metrics.nll(one, y) for one in alone) / 3,
        },
        rel=1e-10,
    )


def test_what_is_kept_of_a_row_does_not_grow_with_members_or_classes():
    small, large = ClassificationScores(), ClassificationScores()
    added(small, *answers(members=1, classes=2))
    added(large, *answers(members=50, classes=30))
    assert [part.shape for part in small.parts] == [part.shape for part in large.parts]


def test_reliability_bins_add_up_to_the_ece():
    p, y = answers()
    kept = added(ClassificationScores(), p, y)
    bins = kept.reliability()
    gaps = [
        n * abs(a - c) for n, a, c in zip(bins["count"], bins["accuracy"], bins["confidence"], strict=True) if a is not None
    ]
    assert sum(bins["count"]) == len(y)
    assert sum(gaps) / len(y) == pytest.approx(kept.scores()["ece"])


def test_the_curve_ends_with_all_rows_and_their_error():
    p, y = answers()
    kept = added(ClassificationScores(), p, y)
    curve = kept.risk_coverage(points=10)
    assert len(curve["risk"]) == 10
    few = added(ClassificationScores(), Predictive(p.outputs[:, :7]), y[:7]).risk_coverage(points=10)
    assert few["coverage"] == curve["coverage"]  # the same places however few rows
    assert curve["coverage"][-1] == 1
    assert curve["risk"][-1] == pytest.approx(1 - metrics.accuracy(p, y))


def test_intervals_hold_their_values_and_shrink_with_rows():
    p, y = answers(rows=2000)
    few, many = added(ClassificationScores(), Predictive(p.outputs[:, :100]), y[:100]), added(ClassificationScores(), p, y)
    for name, interval in many.intervals(draws=200).items():
        assert interval.low <= many.scores()[name] <= interval.high, name
        wide = few.intervals(draws=200)[name]
        assert interval.high - interval.low < wide.high - wide.low, name


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_regression_is_judged_as_its_functions_say(noise):
    p, y = Predictive(torch.randn(4, 90, 1).double(), "regression"), torch.randn(90).double()
    kept = added(RegressionScores(noise), p, y)
    assert kept.scores() == pytest.approx(
        {
            "rmse": metrics.rmse(p, y),
            "nll": regression.gaussian_nll(p, y, noise),
            "calibrated_nll": metrics.calibrated_gaussian_nll(p, y),
            "crps": regression.crps(p, y, noise),
            "coverage_50": regression.coverage(p, y, 0.5, noise),
            "coverage_95": regression.coverage(p, y, 0.95, noise),
            "width_95": regression.width(p, 0.95, noise),
        },
        rel=1e-10,
    )
    split = diversity.bias_variance(p, y)
    assert kept.diversity() == pytest.approx(split._asdict(), rel=1e-10)
    assert kept.member_scores()["rmse"] == pytest.approx(split.error**0.5, rel=1e-10)
    assert set(kept.intervals(draws=50)) == set(kept.scores())


def test_noise_that_members_do_not_explain_is_found_by_validation_rows():
    truth = torch.randn(20_000, 1).double()
    p = Predictive(truth + 0.5 * torch.randn(1, 20_000, 1).double().repeat(2, 1, 1), "regression")
    assert regression.fit_noise_variance(p, truth) == pytest.approx(0.25, rel=0.05)
    sure = Predictive(torch.stack([truth - 1, truth + 1]), "regression")
    assert regression.fit_noise_variance(sure, truth) == 0  # they spread more than they err


def test_the_task_says_what_is_recorded():
    assert isinstance(create_scores("classification"), ClassificationScores)
    assert create_scores("regression", 0.3).noise == 0.3


def test_the_calibrated_nll_of_rows_does_not_depend_on_a_temperature_of_the_prediction():
    p, _ = answers(rows=400)
    y = torch.multinomial(p.probs, 1).squeeze(1)
    hot = calibration.apply_temperature(p, 2.0)
    first, second = added(ClassificationScores(), p, y), added(ClassificationScores(), hot, y)
    assert second.scores()["nll"] != pytest.approx(first.scores()["nll"], rel=0.01)
    torch.testing.assert_close(first["calibrated_nll"], second["calibrated_nll"], rtol=0, atol=2e-4)


def test_without_the_grid_there_is_no_calibrated_nll_and_no_memory_for_it():
    kept = added(create_scores("classification", with_calibrated=False), *answers())
    assert "calibrated_nll" not in kept.scores()
    assert kept.kept_for_calibration == []


def test_a_row_keeps_484_bytes_of_a_classification_and_96_of_a_regression():
    kept = added(ClassificationScores(), *answers(rows=100))
    assert sum(part.nbytes for part in (*kept.parts, *kept.kept_for_calibration)) == 100 * (80 + 404)
    p = Predictive(torch.randn(4, 100, 1), "regression")
    kept = added(RegressionScores(1.0), p, torch.randn(100))
    assert sum(part.nbytes for part in (*kept.parts, *kept.kept_for_calibration)) == 100 * (80 + 16)


def test_rows_that_are_added_later_are_calibrated_too():
    p, y = answers(rows=60)
    kept = added(ClassificationScores(), Predictive(p.outputs[:, :30]), y[:30])
    assert len(kept["calibrated_nll"]) == 30
    added(kept, Predictive(p.outputs[:, 30:]), y[30:])
    assert kept.scores()["calibrated_nll"] == pytest.approx(metrics.calibrated_nll(p, y), rel=1e-6)


def test_one_row_of_a_regression_has_the_nll_of_the_noise_that_is_known():
    p, y = Predictive(torch.randn(2, 1, 1), "regression"), torch.randn(1)
    scores = added(RegressionScores(0.5), p, y).scores()
    assert scores["calibrated_nll"] == scores["nll"]
