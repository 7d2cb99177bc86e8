"""Warm-up, stable, decay: when a run has converged, and what its learning rate does then."""

import io
import math

import lightning as L
import pytest
import torch
from rich.console import Console
from torch import nn

import pluribus
from pluribus.training import phases
from pluribus.training.phases import count_decay_epochs, find_convergence, find_latest_decay, plan_phases
from pluribus.training.progress import ProgressBar
from pluribus.training.settings import Settings

AUTO = Settings(epochs="auto", max_epochs=100)


@pytest.fixture(autouse=True)
def count_epochs_alone(monkeypatch):
    """The networks here take a few steps in an epoch: only a test of its own counts them."""
    monkeypatch.setattr(phases, "PATIENCE_STEPS", 0)


def make_history(scores, name="validation_calibrated_nll"):
    return [{"epoch": place + 1, "step": place + 1, name: score} for place, score in enumerate(scores)]


# --- when a run has converged ---------------------------------------------------------------------------------------------


def test_a_score_that_stays_has_converged_after_five_epochs_without_a_lower_one():
    assert find_convergence([1.0] * 5, AUTO) is None
    assert find_convergence([1.0] * 6, AUTO) == 6


def test_a_score_that_falls_has_not_converged():
    assert find_convergence([0.99**epoch for epoch in range(300)], AUTO) is None


def test_a_gain_below_a_thousandth_is_none():
    assert find_convergence([1 - 1e-5 * epoch for epoch in range(7)], AUTO) == 6
    assert find_convergence([0.998**epoch for epoch in range(50)], AUTO) is None


def test_the_longer_a_run_has_lasted_the_longer_it_waits():
    """A network that has improved for 61 epochs, by medians of three, has a third of all to improve again: 31 of 92."""
    falling = [2 - epoch / 60 for epoch in range(60)]
    assert find_convergence(falling + [falling[-1]] * 40, AUTO) == 92
    rarely = [0.9 ** (epoch // 14) for epoch in range(300)]  # a gain every 14 epochs: after 60 epochs that is often enough
    assert find_convergence(rarely[:14], AUTO) == 6
    assert find_convergence(falling + [falling[-1] * score for score in rarely], AUTO) is None


def test_short_epochs_are_waited_for_by_their_steps(monkeypatch):
    monkeypatch.setattr(phases, "PATIENCE_STEPS", 250)
    scores = [1.0] * 60
    for steps, epochs in ((10, 26), (49, 7), (50, 6), (1000, 6)):  # the first epoch is the one to surpass
        history = [row | {"step": steps * row["epoch"]} for row in make_history(scores)]
        found = plan_phases(history, AUTO)
        assert found is not None
        assert found.decay_from == epochs, steps


def test_one_lucky_epoch_is_not_waited_for():
    falling = [1 - epoch / 100 for epoch in range(40)]
    lucky = list(falling)
    lucky[8] = 0.1
    assert find_convergence(falling, AUTO) is None
    assert find_convergence(lucky, AUTO) is None


def test_warm_ups_do_not_count():
    """While the penalty rises, the score may become worse: the best of those epochs is not the one to surpass."""
    scores = [0.5] * 10 + [1.0 - epoch / 100 for epoch in range(30)]
    assert find_convergence(scores, AUTO) == 6
    assert find_convergence(scores, Settings(epochs="auto", kl_warmup=10)) is None
    assert find_convergence(scores, Settings(epochs="auto", warmup=9.5)) is None


def test_scores_that_are_not_finite_are_no_gain():
    assert plan_phases(make_history([math.nan, math.inf] * 5), AUTO).decay_from == 5
    assert plan_phases(make_history([math.nan] + [1 - epoch / 50 for epoch in range(30)]), AUTO).decay_from == 75


# --- the plan -------------------------------------------------------------------------------------------------------------


def test_the_fall_takes_its_share_of_all_epochs():
    assert [count_decay_epochs(before, 0.25) for before in (0, 1, 6, 30, 75)] == [1, 1, 2, 10, 25]
    assert [count_decay_epochs(before, 0.5) for before in (1, 6, 30)] == [1, 6, 30]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.25, 0.5, 0.9])
def test_the_fall_begins_as_late_as_it_can_and_ends_within_the_maximum(share):
    for most in (1, 2, 3, 5, 10, 37, 100):
        latest = find_latest_decay(Settings(epochs="auto", max_epochs=most, decay_share=share))
        assert latest + count_decay_epochs(latest, share) <= most
        assert latest + 1 + count_decay_epochs(latest + 1, share) > most


def test_a_run_that_has_converged_falls_and_one_that_the_maximum_stops_was_still_improving():
    scores = [1 - epoch / 20 for epoch in range(10)] + [0.55] * 30
    before, after = plan_phases(make_history(scores[:15]), AUTO), plan_phases(make_history(scores), AUTO)
    assert (before.decay_from, before.epochs, before.has_fallen) == (75, 100, False)
    assert (after.decay_from, after.epochs, after.has_fallen, after.still_improving) == (17, 23, True, False)
    assert after == plan_phases(make_history(scores[:17]), AUTO), "what is decided is not decided anew"
    forced = plan_phases(make_history([0.9**epoch for epoch in range(90)]), AUTO)
    assert (forced.decay_from, forced.epochs, forced.has_fallen, forced.still_improving) == (75, 100, True, True)


def test_a_fixed_number_of_epochs_falls_in_its_last_share_and_says_whether_it_was_still_improving():
    settings = Settings(epochs=30, schedule="wsd", decay_share=0.2)
    improving = plan_phases(make_history([0.9**epoch for epoch in range(30)]), settings)
    assert (improving.decay_from, improving.epochs, improving.still_improving) == (24, 30, True)
    # In the fall the score becomes better again: what counts is whether it had converged before.
    assert not plan_phases(make_history([1.0] * 24 + [0.5] * 6), settings).still_improving


def test_the_calibrated_score_decides_before_the_plain_one_and_a_regression_has_its_error():
    rows = [{"validation_nll": 0.9**epoch, "validation_calibrated_nll": 1.0} for epoch in range(10)]
    assert plan_phases(rows, AUTO).decay_from == 6
    assert plan_phases(make_history([1.0] * 10, "validation_rmse"), AUTO).decay_from == 6
    assert plan_phases(make_history([1.0] * 10), Settings(epochs=10)) is None


def test_phases_have_names():
    plan = plan_phases(make_history([1.0] * 10), Settings(epochs="auto", warmup=2))
    assert plan.decay_from == 8
    assert [plan.name_phase(done) for done in (0, 1, 2, 7, 8, 9)] == [
        "warm-up",
        "warm-up",
        "stable",
        "stable",
        "decay",
        "decay",
    ]


# --- settings -------------------------------------------------------------------------------------------------------------


def test_auto_has_the_schedule_wsd_and_no_other():
    assert Settings(epochs="auto").schedule == "wsd"
    assert Settings().schedule == "cosine"
    for schedule in ("cosine", "constant", "linear", "step"):
        with pytest.raises(ValueError, match="schedule must be left out or wsd with epochs auto"):
            Settings(epochs="auto", schedule=schedule)
    kept = Settings(epochs="auto", max_epochs=7)
    assert Settings(**kept.model_dump()) == kept


def test_warm_up_and_fall_must_fit_into_the_run():
    with pytest.raises(ValueError, match="warmup and fall must fit"):
        Settings(epochs="auto", max_epochs=10, warmup=8)
    with pytest.raises(ValueError, match="warmup and fall must fit"):
        Settings(epochs=10, schedule="wsd", warmup=8)
    with pytest.raises(ValueError, match="decay_share"):
        Settings(decay_share=0)


# --- training -------------------------------------------------------------------------------------------------------------


class RateRecorder(L.Callback):
    """Keeps the learning rate of every step, and stops the run before one step."""

    def __init__(self, stop: int = -1) -> None:
        self.rates, self.stop = [], stop

    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == self.stop:
            raise RuntimeError("enough")
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])


def train(recorder=None, rows=32, **options):
    """A small run with two steps an epoch; validation scores stay as they are at a rate near zero."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(nn.Linear(3, 2), pluribus.Single()).double()
    x = torch.randn(2 * rows, 3, dtype=torch.double)
    y = (x[:, 0] > 0).long()
    kept = {"batch_size": rows // 2, "epochs": "auto", "max_epochs": 20, "progress": False, "accelerator": "cpu"} | options
    validation = kept.pop("validation", (x[rows:], y[rows:]))
    history = pluribus.fit(ensemble, (x[:rows], y[:rows]), validation, callbacks=[recorder] if recorder else [], **kept)
    return history, ensemble.state_dict()


def test_a_run_ends_when_it_has_converged_and_its_rate_has_fallen_evenly_to_nothing():
    recorder = RateRecorder()
    history, _ = train(recorder, lr=1e-9, warmup=1)
    assert len(history) == 9  # 1 epoch of warm-up, 6 that do not improve, and a fall of 7 · 0.25 / 0.75 epochs
    warm, stable, falling = [0.5, 1.0], [1.0] * 12, [1.0, 0.75, 0.5, 0.25]
    assert recorder.rates == pytest.approx([1e-9 * factor for factor in warm + stable + falling])


def test_a_run_that_improves_lasts_until_the_maximum():
    recorder = RateRecorder()
    history, _ = train(recorder, lr=0.01, max_epochs=8)
    assert len(history) == 8
    assert plan_phases(history, Settings(epochs="auto", max_epochs=8)).still_improving
    assert recorder.rates == pytest.approx([0.01] * 12 + [0.01, 0.0075, 0.005, 0.0025])


def test_a_fixed_number_of_epochs_has_the_same_fall():
    recorder = RateRecorder()
    train(recorder, lr=0.01, epochs=4, schedule="wsd", decay_share=0.5)
    assert recorder.rates == pytest.approx([0.01] * 5 + [0.0075, 0.005, 0.0025])


@pytest.mark.parametrize("stop", [5, 12, 15])
def test_a_run_that_was_stopped_in_any_phase_goes_on_bit_for_bit(stop, tmp_path):
    options = {"lr": 1e-6, "checkpoint_every": "1"}
    recorder, rest = RateRecorder(stop), RateRecorder()
    whole = RateRecorder()
    history, state = train(whole, **options)
    assert len(history) == 8
    with pytest.raises(RuntimeError, match="enough"):
        train(recorder, folder=tmp_path, **options)
    again, same = train(rest, folder=tmp_path, resume=True, **options)
    assert again == history
    assert recorder.rates + rest.rates == whole.rates
    assert all(torch.equal(same[name], value) for name, value in state.items())
    finished = RateRecorder()
    assert train(finished, folder=tmp_path, resume=True, **options)[0] == history
    assert finished.rates == [], "a finished run takes no step more"


def test_early_stopping_may_end_it_sooner():
    assert len(train(lr=1e-9, patience=20)[0]) == 8
    x = torch.randn(20, 3, dtype=torch.double)
    worse, _ = train(lr=0.05, patience=1, validation=(x, (x[:, 0] <= 0).long()))  # the opposite of what is learnt
    assert len(worse) == 2


def test_without_validation_rows_nobody_knows_when_it_has_converged():
    with pytest.raises(ValueError, match="epochs auto needs validation rows"):
        train(validation=None)


def test_an_option_changes_settings_that_are_passed_and_must_fit_them():
    settings = Settings(epochs=2, lr=1e-9)
    assert len(train(settings=settings, epochs="auto", max_epochs=3)[0]) == 3
    with pytest.raises(ValueError, match="schedule must be left out"):
        train(settings=Settings(schedule="linear"), epochs="auto")


def test_the_lines_of_a_log_tell_the_phase_and_the_most_epochs(capsys):
    bar = ProgressBar(Console(file=io.StringIO(), force_terminal=False))
    train(bar, lr=1e-9)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        *(f"epoch {epoch}/≤20 stable" for epoch in range(1, 6)),
        *("epoch 6/8 stable", "epoch 7/8 decay", "epoch 8/8 decay"),
    ]
