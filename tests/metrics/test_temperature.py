"""Calibrated NLL by cross-fitted temperatures."""

import math

import pytest
import torch

from pluribus.core.predictive import Predictive
from pluribus.metrics.calibration import apply_temperature, fit_temperature
from pluribus.metrics.temperature import (
    LOG_PRIOR,
    LOG_TEMPERATURES,
    calibrated_nll,
    cross_fit_nll,
    find_best_temperature,
    nll_at_temperatures,
)


def draw_rows(rows: int, temperature: float = 1.0, seed: int = 0) -> tuple[Predictive, torch.Tensor]:
    """Predictions of two members whose averaged answer is calibrated at `temperature`."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(2, rows, 4, generator=generator, dtype=torch.double)
    p = Predictive(logits)
    targets = torch.multinomial((p.log_probs / temperature).softmax(1), 1, generator=generator).squeeze(1)
    return p, targets


def test_the_table_has_the_nll_of_every_temperature_by_brute_force():
    p, y = draw_rows(7)
    table = nll_at_temperatures(p, y)
    for place in (0, 20, 50, 100):
        expected = apply_temperature(p, math.exp(LOG_TEMPERATURES[place].item())).nll(y)
        torch.testing.assert_close(table[:, place], expected)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7, 3.0])
def test_the_best_temperature_is_that_of_a_search_over_all_of_them(temperature):
    p, y = draw_rows(4000, temperature)
    log_t, weights = find_best_temperature(nll_at_temperatures(p, y).sum(0))
    assert math.exp(log_t) == pytest.approx(fit_temperature(p, y, width=math.inf), rel=1e-3)
    value = (nll_at_temperatures(p, y) @ weights).mean().item()
    assert value == pytest.approx(apply_temperature(p, math.exp(log_t)).nll(y).mean().item(), abs=1e-5)


def test_cross_fitting_scores_a_row_at_temperatures_of_halves_that_it_is_not_in():
    p, y = draw_rows(10)
    table = nll_at_temperatures(p, y)
    changed = table.clone()
    changed[3] = table[3] * 50  # a row that would pull every temperature to itself
    before, after = cross_fit_nll(table, splits=1), cross_fit_nll(changed, splits=1)
    generator = torch.Generator().manual_seed(0)
    half = set(torch.randperm(10, generator=generator)[:5].tolist())
    same = [row for row in range(10) if (row in half) == (3 in half) and row != 3]
    torch.testing.assert_close(before[same], after[same])  # they are scored at the temperature of the other half
    other = [row for row in range(10) if (row in half) != (3 in half)]
    assert not torch.allclose(before[other], after[other])


def test_calibration_removes_a_wrong_temperature_and_nothing_else():
    p, y = draw_rows(6000, temperature=1.0)
    hot = apply_temperature(p, 2.5)
    plain = apply_temperature(p, 1.0)
    assert hot.nll(y).mean() - plain.nll(y).mean() > 0.05
    assert calibrated_nll(hot, y) == pytest.approx(calibrated_nll(plain, y), abs=1e-4)
    assert calibrated_nll(plain, y) == pytest.approx(plain.nll(y).mean().item(), abs=2e-3)


def test_few_rows_that_are_nearly_all_right_are_not_scored_at_temperature_zero():
    """A point fit on such rows drives T to 0; here the row that is wrong pays for it in the half that it is not fitted on."""
    generator = torch.Generator().manual_seed(1)
    logits = 3 * torch.randn(1, 130, 10, generator=generator, dtype=torch.double)
    y = logits[0].argmax(1)
    y[0] = logits[0, 0].argsort()[-2]
    p = Predictive(logits)
    assert calibrated_nll(p, y) > apply_temperature(p, fit_temperature(p, y, width=math.inf)).nll(y).mean().item()


def test_the_prior_keeps_the_temperature_of_rows_that_are_nearly_all_right():
    """Rows that are 95 % sure. Without a prior T is 1/20, the end of the search, if all of 130 rows are right."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1, 130, 10, generator=generator, dtype=torch.double)
    logits[0, :, 3] += 6
    p, y = Predictive(logits), logits[0].argmax(1)
    assert 0.9 < p.confidence.mean() < 0.99
    assert fit_temperature(p, y, width=math.inf) == pytest.approx(math.exp(-3), rel=0.02)
    assert fit_temperature(p, y) > 0.4
    y[0] = logits[0, 0].argsort()[-2]
    assert fit_temperature(p, y) > 0.6
    assert fit_temperature(p, y, width=math.inf) + 0.01 < fit_temperature(p, y) < 1  # pulled towards 1, and not beyond


def test_the_prior_adds_the_square_of_log_t_over_twice_its_variance_to_the_sum_over_rows():
    """By brute force, on a fine grid; a prior on the mean, or without the factor two, has another minimum."""
    p, y = draw_rows(40, temperature=2.0)
    grid = torch.linspace(-1, 2, 601, dtype=torch.double)
    sums = torch.stack([apply_temperature(p, math.exp(u)).nll(y).sum() for u in grid.tolist()])
    for width in (0.1, 0.5, 2.0):
        best = grid[(sums + grid.square() / (2 * width**2)).argmin()].item()
        assert math.log(fit_temperature(p, y, width=width)) == pytest.approx(best, abs=0.0051)
    assert fit_temperature(p, y, width=0.1) < fit_temperature(p, y, width=0.5) < fit_temperature(p, y, width=2.0)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_prior_does_not_matter_with_five_thousand_rows(temperature):
    p, y = draw_rows(5000, temperature)
    with_prior, without = fit_temperature(p, y), fit_temperature(p, y, width=math.inf)
    assert with_prior == pytest.approx(without, rel=0.01)
    nll = [apply_temperature(p, t).nll(y).mean().item() for t in (with_prior, without)]
    assert nll[0] - nll[1] < 1e-5


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan])
def test_a_prior_without_a_width_is_refused(width):
    with pytest.raises(ValueError, match="width must be positive"):
        fit_temperature(*draw_rows(5), width=width)


def test_cross_fitting_is_the_mean_over_splits_of_each_half_at_the_best_temperature_of_the_other():
    """By a loop over the splits, in double precision: a half that is scored by its own temperature would differ."""
    p, y = draw_rows(31, temperature=1.6)
    table = nll_at_temperatures(p, y)
    generator, expected = torch.Generator().manual_seed(5), torch.zeros(31, dtype=torch.double)
    for _ in range(4):
        half = torch.zeros(31, dtype=torch.bool)
        half[torch.randperm(31, generator=generator)[:15]] = True
        for fitted, scored in ((half, ~half), (~half, half)):
            _, weights = find_best_temperature(table[fitted].sum(0))
            expected[scored] += table[scored] @ weights / 4
    torch.testing.assert_close(cross_fit_nll(table, splits=4, seed=5), expected)


def test_with_the_prior_rows_that_are_all_right_are_not_scored_at_temperature_zero():
    """Sixty validation rows without an error once had a calibrated NLL of 0.0008, and decided a tuning."""
    logits = 2 * torch.randn(1, 60, 10, generator=torch.Generator().manual_seed(2), dtype=torch.double)
    p, y = Predictive(logits), logits[0].argmax(1)
    table = nll_at_temperatures(p, y)
    free, held = (cross_fit_nll(table, prior=prior).mean().item() for prior in (None, LOG_PRIOR))
    assert free < 0.1 * p.nll(y).mean().item()
    assert held > 3 * free


def test_the_prior_does_not_matter_for_thousands_of_rows():
    p, y = draw_rows(5000, temperature=2.5)
    table = nll_at_temperatures(p, y)
    assert cross_fit_nll(table, prior=LOG_PRIOR).mean().item() == pytest.approx(cross_fit_nll(table).mean().item(), abs=1e-4)


def test_an_impossible_target_is_an_infinite_nll_and_leaves_the_other_rows_as_they_are():
    p, y = draw_rows(20)
    table = nll_at_temperatures(p, y)
    table[4] = torch.inf
    found = cross_fit_nll(table)
    assert found[4] == torch.inf
    assert torch.isfinite(found[torch.arange(20) != 4]).all()


def test_one_row_is_scored_as_it_is():
    p, y = draw_rows(1)
    torch.testing.assert_close(cross_fit_nll(nll_at_temperatures(p, y)), p.nll(y))
