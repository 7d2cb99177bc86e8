import math

import pytest
import torch

from pluribus import Predictive, metrics
from pluribus.core.shares import Share
from pluribus.metrics.streaming import Tally
from pluribus.metrics.temperature import PRIOR_WIDTH


def test_batch_by_batch_the_scores_are_those_of_all_rows():
    outputs, targets = 3 * torch.randn(4, 1000, 7, dtype=torch.double), torch.randint(0, 7, (1000,))
    tally = Tally("classification")
    for start in range(0, 1000, 130):
        tally.add(Predictive(outputs[:, start : start + 130]), targets[start : start + 130])
    p = Predictive(outputs)
    whole = {"accuracy": metrics.accuracy(p, targets), "nll": metrics.nll(p, targets), "ece": metrics.ece(p, targets)}
    assert {name: tally.scores()[name] for name in whole} == pytest.approx(whole, abs=1e-12)


def test_processes_add_up_their_sums():
    outputs, targets = torch.randn(2, 90, 3), torch.randint(0, 3, (90,))
    parts = [Tally("classification"), Tally("classification"), Tally("classification")]
    parts[0].add(Predictive(outputs), targets)
    for part, rows in zip(parts[1:], (slice(0, 30), slice(30, 90)), strict=True):
        part.add(Predictive(outputs[:, rows]), targets[rows])
    parts[1].sums += parts[2].sums
    assert parts[1].scores() == pytest.approx(parts[0].scores())


def test_a_regression_has_its_root_mean_squared_error():
    outputs, targets = torch.randn(3, 50, 1, dtype=torch.double), torch.randn(50, dtype=torch.double)
    tally = Tally("regression")
    tally.add(Predictive(outputs[:, :20], "regression"), targets[:20])
    tally.add(Predictive(outputs[:, 20:], "regression"), targets[20:])
    assert tally.scores()["rmse"] == pytest.approx((outputs.mean(0)[:, 0] - targets).square().mean().sqrt().item())


def test_no_rows_no_scores():
    assert Tally("classification").scores() == {}


def make_answers(rows: int = 301, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs `[1, B, C]` that are far too sure, and targets that are often the likeliest class."""
    outputs = 6 * torch.randn(1, rows, classes, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    guesses = torch.randint(0, classes, (rows,), generator=torch.Generator().manual_seed(1))
    return outputs, torch.where(torch.arange(rows) % 10 < 7, outputs[0].argmax(1), guesses)


def test_the_calibrated_nll_is_that_of_each_half_at_the_temperature_of_the_other():
    outputs, targets = make_answers()
    tally = Tally("classification")
    for start in range(0, 301, 77):  # a batch of an odd size begins the next one at an odd position
        tally.add(Predictive(outputs[:, start : start + 77]), targets[start : start + 77])

    def total(rows: slice, log_t: float) -> float:
        scaled = outputs[0, rows] / torch.tensor(log_t).exp()
        return torch.nn.functional.cross_entropy(scaled, targets[rows], reduction="sum").item()

    halves, found = (slice(0, None, 2), slice(1, None, 2)), 0.0
    fine = [step / 500 for step in range(-1250, 1251)]
    for own, other in (halves, halves[::-1]):
        best = min(fine, key=lambda log_t: total(other, log_t) + (log_t / PRIOR_WIDTH) ** 2 / 2)
        found += total(own, best)
    assert tally.scores()["calibrated_nll"] == pytest.approx(found / 301, abs=1e-4)
    assert tally.scores()["nll"] > found / 301 + 0.5, "calibration makes no difference here: the test could not fail"


@pytest.mark.parametrize("world", [2, 3])
def test_the_halves_do_not_depend_on_the_number_of_processes(world):
    outputs, targets = make_answers()
    whole = Tally("classification")
    whole.add(Predictive(outputs), targets)
    added = torch.zeros_like(whole.sums)
    for rank in range(world):
        tally, done = Tally("classification"), 0
        for rows in (101, 200):
            share = Share(rank, world, rows)
            own = done + share.positions
            tally.add(Predictive(outputs[:, own]), targets[own], own)
            done += rows
        added += tally.sums
    torch.testing.assert_close(added, whole.sums)


def test_rows_that_no_temperature_can_help_make_the_calibrated_nll_infinite_and_fit_none():
    outputs, targets = make_answers(20)
    outputs[0, 3, targets[3]] = -torch.inf
    tally = Tally("classification")
    tally.add(Predictive(outputs), targets)
    assert tally.scores()["calibrated_nll"] == torch.inf
    outputs[0, 3] = torch.nan
    tally.add(Predictive(outputs), targets)
    assert math.isnan(tally.scores()["calibrated_nll"])


def test_one_row_has_no_other_half_and_keeps_its_temperature():
    outputs, targets = make_answers(1)
    tally = Tally("classification")
    tally.add(Predictive(outputs), targets)
    assert tally.scores()["calibrated_nll"] == pytest.approx(tally.scores()["nll"])


def test_a_half_that_is_all_right_does_not_drive_the_temperature_of_the_other_to_zero():
    outputs, targets = torch.tensor([[[3.0, 0.0]] * 40]), torch.zeros(40).long()
    targets[1] = 1  # at an odd position: the even rows are all right
    tally = Tally("classification")
    tally.add(Predictive(outputs), targets)
    assert tally.scores()["calibrated_nll"] < 2 * tally.scores()["nll"]


def test_an_answer_with_places_counts_each_place_as_a_row_of_its_half():
    outputs, targets = make_answers(40 * 6)
    places = outputs[0].view(40, 6, 5).permute(0, 2, 1).reshape(1, 40, 5, 2, 3)
    tally, flat = Tally("classification"), Tally("classification")
    tally.add(Predictive(places[:, :25]), targets.view(40, 2, 3)[:25])
    tally.add(Predictive(places[:, 25:]), targets.view(40, 2, 3)[25:])
    flat.add(Predictive(outputs), targets, torch.arange(40).repeat_interleave(6))
    torch.testing.assert_close(tally.sums, flat.sums)


def test_it_is_left_out_where_it_is_not_wanted():
    tally = Tally("classification", calibrated=False)
    tally.add(Predictive(torch.randn(1, 4, 3)), torch.zeros(4).long())
    assert set(tally.scores()) == {"accuracy", "nll", "ece"}
