"""Stopping bad trials early: Optuna's median pruner on curves that no longer change."""

import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import pluribus
from pluribus.runs.pruning import Pruner, TrialPruning, quiet_optuna, read_curve

CURVES = [[0.9, 0.5, 0.4, 0.3], [0.9, 0.7, 0.6, 0.5], [0.9, 0.8, 0.9, 0.9]]


def stop_by_hand(curve, others):
    warmup = min(map(len, others), default=0) // 3
    for epoch in range(warmup + 1, len(curve) + 1):
        known = [other[epoch - 1] for other in others if len(other) >= epoch]
        if known and min(curve[:epoch]) > statistics.median(known):
            return epoch
    return None


scores = st.lists(st.integers(0, 20).map(lambda n: n / 4), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(scores, st.lists(scores, max_size=4))
def test_a_trial_is_stopped_when_its_best_is_worse_than_the_median_of_the_others_at_that_epoch(curve, others):
    """After a third of the shortest of the other curves."""
    assert Pruner(others).find_last_epoch(curve) == stop_by_hand(curve, others)


def test_the_decision_is_the_same_epoch_by_epoch_and_at_once():
    curve = [0.9, 0.75, 0.65, 0.2]
    growing, pruner = [], Pruner(CURVES)
    for epoch in range(1, 5):
        growing.append(pruner.find_last_epoch(curve[:epoch]))
    assert growing == [None, 2, 2, 2]
    assert Pruner(CURVES).find_last_epoch(curve) == 2


def test_scores_that_are_not_finite_are_worse_than_any():
    assert Pruner(CURVES).find_last_epoch([None, None]) == 2, "the first epoch is a third of them"
    assert Pruner([[None, 0.5], [None, 0.5]]).find_last_epoch([0.9, 0.4]) is None


def test_the_curve_is_of_the_calibrated_score_where_there_is_one():
    rows = [{"validation_nll": 0.4, "validation_calibrated_nll": 0.3}, {"validation_nll": math.nan}]
    assert read_curve(rows) == [0.3, None]
    assert read_curve([{"validation_rmse": 2.0}]) == [2.0]
    assert read_curve([{"loss": 1.0}]) == [None]


def train(callbacks, folder=None, resume=False):
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(nn.Linear(4, 2), pluribus.Single())
    y = (x[:, 0] > 0).long()
    return pluribus.fit(
        *(ensemble, (x, y), (x, y)), epochs=4, callbacks=callbacks, folder=folder, resume=resume, progress=False
    )


def test_training_ends_after_the_epoch_that_is_found(tmp_path):
    full = train([])
    others = [[0.0] * 4]
    stopped = train([TrialPruning(Pruner(others))], tmp_path)
    assert stopped == full[:2]
    assert train([TrialPruning(Pruner(others))], tmp_path, resume=True) == full[:2], "a resumed trial takes no other epoch"


def test_optuna_is_quiet_and_as_loud_as_before_afterwards(capfd):
    import optuna

    before = optuna.logging.get_verbosity()
    with quiet_optuna() as same:
        same.create_study()
    assert same is optuna
    assert optuna.logging.get_verbosity() == before
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("others", [[], [[]]])
def test_without_a_curve_to_compare_with_nothing_is_stopped(others):
    assert Pruner(others).find_last_epoch([9.0, 9.0]) is None
