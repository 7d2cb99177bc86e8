"""Phases: each kind of answer is what its name says, training is not disturbed, and a kill loses nothing."""

import lightning
import pytest
import torch

import pluribus
from pluribus import VariationalDropout
from pluribus.papers.variance.phase_transition import PhaseTracker, Transition, find_transition, measure_answer, read_log_alphas
from pluribus.training.fit import fit


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def rows(count=60):
    torch.manual_seed(1)
    x = torch.randn(count, 4)
    return x, x[:, :3].argmax(1)


def test_answers_are_those_of_the_ensemble_set_so():
    x, y = rows()
    ensemble = pluribus.ensemble(net(), VariationalDropout(log_alpha=0.0, samples=50)).eval()
    ensemble.answer = "mean"
    mean = (ensemble.predict(x).labels == y).double().mean().item()
    ensemble.answer = "average"
    assert measure_answer(ensemble, x, y, "mean") == mean
    assert measure_answer(ensemble, x, y, "sample", seed=3) == measure_answer(ensemble, x, y, "sample", seed=3)
    assert (ensemble.samples, ensemble.answer) == (50, "average")


def test_one_draw_is_one_and_an_average_is_many(monkeypatch):
    x, y = rows(20)
    ensemble = pluribus.ensemble(net(), VariationalDropout(samples=7)).eval()
    asked = []
    original = type(ensemble).predict
    monkeypatch.setattr(
        type(ensemble), "predict", lambda self, x: asked.append((self.answer, self.members)) or original(self, x)
    )
    for answer in ("mean", "sample", "average", "zero-mean", "zero-mean average"):
        measure_answer(ensemble, x, y, answer)
    assert asked == [("mean", 1), ("sample", 1), ("average", 7), ("zero-mean", 1), ("zero-mean", 7)]


def test_zero_mean_answers_do_without_the_means():
    """With hardly any noise the means know everything, and zero-mean draws nothing."""
    x, y = rows(600)
    ensemble = pluribus.ensemble(net(), VariationalDropout(log_alpha=-20.0, include="2"))
    fit(ensemble, (x, y), epochs=30, lr=0.02, batch_size=60, progress=False)
    assert measure_answer(ensemble, x, y, "mean") > 0.9
    assert measure_answer(ensemble, x, y, "average") > 0.9
    assert measure_answer(ensemble, x, y, "zero-mean") < 0.6


def test_watching_does_not_change_what_is_learnt():
    x, y = rows()
    weights = []
    for callbacks in ([], [PhaseTracker(x, y)]):
        ensemble = pluribus.ensemble(net(), VariationalDropout())
        fit(ensemble, (x, y), epochs=3, batch_size=20, callbacks=callbacks, progress=False)
        weights.append(torch.cat([parameter.flatten() for parameter in ensemble.parameters()]))
    assert torch.equal(*weights)


def test_after_a_kill_rows_go_on(tmp_path):
    x, y = rows()

    class Killed(Exception):
        pass

    class Kill(lightning.Callback):
        def on_train_epoch_end(self, trainer, lesson):
            if trainer.current_epoch == 2:
                raise Killed

    options = {"epochs": 4, "batch_size": 20, "progress": False}
    whole = PhaseTracker(x, y)
    fit(pluribus.ensemble(net(), VariationalDropout()), (x, y), callbacks=[whole], **options)
    with pytest.raises(Killed):
        fit(
            pluribus.ensemble(net(), VariationalDropout()),
            (x, y),
            folder=tmp_path,
            callbacks=[PhaseTracker(x, y), Kill()],
            **options,
        )
    rest = PhaseTracker(x, y)
    fit(pluribus.ensemble(net(), VariationalDropout()), (x, y), folder=tmp_path, resume=True, callbacks=[rest], **options)
    assert [row["epoch"] for row in rest.rows] == [0, 1, 2, 3, 4]
    assert rest.rows == whole.rows


def test_log_alpha_is_told_by_layer():
    ensemble = pluribus.ensemble(net(), VariationalDropout(log_alpha=-3.0))
    assert read_log_alphas(ensemble) == {"0": -3.0, "2": -3.0}


def test_a_method_with_one_kind_of_answer_is_refused():
    x, y = rows(4)
    with pytest.raises(ValueError, match="Variance answers in one way only"):
        measure_answer(pluribus.ensemble(net(), pluribus.Variance()), x, y, "mean")


def curve(*means, average=0.9):
    return [{"epoch": epoch, "mean": mean, "average": average} for epoch, mean in enumerate(means)]


@pytest.mark.parametrize("means", [(0.1, 0.9, 0.9), (0.1, 0.9, 0.1, 0.9), (0.1, 0.1, 0.1)])
def test_there_is_no_transition_without_a_fall_to_stay(means):
    assert find_transition(curve(*means), chance=0.1) is None


def test_a_network_that_forgot_everything_is_no_transition():
    rows = [{"epoch": 0, "mean": 0.9, "average": 0.9}, {"epoch": 1, "mean": 0.1, "average": 0.1}]
    assert find_transition(rows, chance=0.1) is None


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(0.8801, 0.9), (0.1499, 0.9)], (0, 1)),
        ([(0.8799, 0.9), (0.1499, 0.9)], None),  # the mean was more than 2 points below the average
        ([(0.8801, 0.9), (0.1501, 0.9)], None),  # it stayed more than 5 points above chance
        ([(0.9, 0.9), (0.1, 0.4501)], (0, 1)),
        ([(0.9, 0.9), (0.1, 0.4499)], None),  # the average lost half of its best
        ([(0.449, 0.4499), (0.1, 0.9)], None),  # the average had not reached half of its best
        ([(0.4501, 0.4501), (0.1, 0.9)], (0, 1)),
        ([(0.9, 0.9), (0.9, 0.9), (0.5, 0.9), (0.1, 0.9), (0.1, 0.9)], (1, 3)),
        ([(0.9, 0.9), (0.1, 0.9), (0.9, 0.9)], None),
        ([(0.9, 0.9), (0.1, 0.9), (0.5, 0.9)], None),  # the mean did not stay at chance
    ],
)
def test_a_transition_is_found_by_the_stated_thresholds(rows, found):
    rows = [{"epoch": epoch, "mean": mean, "average": average} for epoch, (mean, average) in enumerate(rows)]
    assert find_transition(rows, chance=0.1) == (None if found is None else Transition(*found))
