"""Calibrated NLL by cross-fitted temperatures."""

import math

import pytest
import torch

from pluribus.core.predictive import Predictive
from pluribus.metrics.calibration import apply_temperature, fit_temperature
from pluribus.metrics.temperature import (
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
    assert math.exp(log_t) == pytest.approx(fit_temperature(p, y), rel=1e-3)
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
    assert calibrated_nll(p, y) > apply_temperature(p, fit_temperature(p, y)).nll(y).mean().item()


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
