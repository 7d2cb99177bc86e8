import pytest
import torch

from pluribus import Predictive, metrics
from pluribus.metrics.streaming import Tally


def test_batch_by_batch_the_scores_are_those_of_all_rows():
    outputs, targets = 3 * torch.randn(4, 1000, 7, dtype=torch.double), torch.randint(0, 7, (1000,))
    tally = Tally("classification")
    for start in range(0, 1000, 130):
        tally.add(Predictive(outputs[:, start : start + 130]), targets[start : start + 130])
    p = Predictive(outputs)
    whole = {"accuracy": metrics.accuracy(p, targets), "nll": metrics.nll(p, targets), "ece": metrics.ece(p, targets)}
    assert tally.scores() == pytest.approx(whole, abs=1e-12)


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
