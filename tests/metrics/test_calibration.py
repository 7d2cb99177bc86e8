import math

import pytest
import torch
from sklearn.metrics import brier_score_loss

from pluribus import Predictive, metrics
from pluribus.metrics import calibration
from pluribus.metrics.calibration import ece


def predict(probs):
    """One member with these probabilities."""
    return Predictive(torch.tensor(probs, dtype=torch.double).log().unsqueeze(0))


def draw_calibrated(rows=4000, classes=5, sharper=1.0, seed=0):
    """Calibrated predictions and their targets; with `sharper` above 1, the predictions are overconfident."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.double) * 1.5
    targets = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return Predictive((sharper * logits).unsqueeze(0)), targets


def test_brier_is_the_squared_distance_from_the_truth():
    p = predict([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    by_hand = ((0.3**2 + 0.2**2 + 0.1**2) + (0.1**2 + 0.9**2 + 0.8**2)) / 2
    assert calibration.brier(p, torch.tensor([0, 1])) == pytest.approx(by_hand)


def test_brier_of_two_classes_is_twice_scikit_learns():
    p, _ = draw_calibrated(500, 2)
    y = torch.randint(0, 2, (500,))
    assert calibration.brier(p, y) == pytest.approx(2 * brier_score_loss(y.numpy(), p.probs[:, 1].numpy()))


def test_adaptive_bins_hold_equally_many_rows():
    """Two bins of two: (0.5, 0.6) with one right answer of two, (0.8, 0.9) with two."""
    p = predict([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2], [0.6, 0.4]])
    gaps = abs(1 - 1.1) + abs(2 - 1.7)
    assert calibration.adaptive_ece(p, torch.tensor([0, 0, 0, 1]), bins=2) == pytest.approx(gaps / 4)


def test_classwise_errors_are_counted_for_every_class():
    p = predict([[0.9, 0.1], [0.3, 0.7]])
    # class 0: bins (0, ½] and (½, 1] hold 0.3 and 0.9; class 1: 0.1 and 0.7; the truth is 0 and 0
    gaps = abs(1 - 0.3) + abs(1 - 0.9) + abs(0 - 0.1) + abs(0 - 0.7)
    assert calibration.classwise_ece(p, torch.tensor([0, 0]), bins=2) == pytest.approx(gaps / 4)


@pytest.mark.parametrize("error", [ece, calibration.adaptive_ece, calibration.classwise_ece])
def test_predictions_that_mean_what_they_say_have_a_small_error_and_sharper_ones_a_large_one(error):
    assert error(*draw_calibrated()) < 0.02  # a bin of 270 rows is off by about 0.03 at most in each of its rows' weight
    assert error(*draw_calibrated(sharper=3.0)) > 2.5 * error(*draw_calibrated())


@pytest.mark.parametrize("sharper", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_what_was_too_sharp(sharper):
    p, targets = draw_calibrated(20_000, sharper=sharper)
    found = calibration.fit_temperature(p, targets)
    assert found == pytest.approx(sharper, rel=0.05)
    near = [metrics.nll(calibration.apply_temperature(p, found * scale), targets) for scale in (0.9, 1.0, 1.1)]
    assert near[1] == min(near)


def test_a_temperature_of_one_changes_nothing_and_keeps_the_average_of_members():
    p = Predictive(torch.randn(3, 10, 4, dtype=torch.double))
    torch.testing.assert_close(calibration.apply_temperature(p, 1.0).probs, p.probs)
    flat = calibration.apply_temperature(p, 1e9).probs
    torch.testing.assert_close(flat, torch.full_like(flat, 0.25))
    assert math.isclose(calibration.apply_temperature(p, 2.0).probs.sum(1).mean().item(), 1.0)


def test_confidence_bins_are_open_below_and_closed_above_and_add_up():
    confidence, correct = torch.tensor([0.0, 0.25, 0.3, 0.5, 0.9, 1.0]).double(), torch.tensor([1, 0, 1, 0, 1, 1])
    found = calibration.bin_by_confidence(confidence, correct, bins=4)
    assert found.rows.tolist() == [2, 2, 0, 2]
    assert found.correct.tolist() == [1, 1, 0, 2]
    assert found.confidence.tolist() == pytest.approx([0.25, 0.8, 0, 1.9])
    assert found.error == pytest.approx((0.75 + 0.2 + 0.1) / 6)
    parts = [calibration.bin_by_confidence(confidence[rows], correct[rows], bins=4) for rows in (slice(2), slice(2, None))]
    torch.testing.assert_close(torch.stack(parts[0]) + torch.stack(parts[1]), torch.stack(found))


def test_no_rows_have_no_calibration_error():
    assert calibration.bin_by_confidence(torch.zeros(0), torch.zeros(0)).error == 0
