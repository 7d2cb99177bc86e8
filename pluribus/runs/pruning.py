"""Stopping bad trials early, by Optuna's median pruner.

A trial is stopped once its best validation score so far is worse than the median score, at the same epoch, of the trials that
it is compared with: those of the first round, which are all finished before any trial of the second round begins. So the
decision is a function of learning curves that no longer change, and it is the same for any number of workers, in any order, and
after a kill. That is why the study is in memory: processes need not tell one another anything.

Runs of which each ends when it has converged are compared while their learning rate stays: the fall, in which scores improve at
once, begins at another epoch in each. So the curve of a trial ends where the fall of its learning rate began, if that is known.
"""

import contextlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Checkpoint

from ..core.files import restore_number
from ..training.lightning_module import TrainingModule
from ..training.phases import SCORES

Curve = Sequence[float | None]


def read_curve(history: Sequence[Mapping[str, float]]) -> list[float | None]:
    """The validation score of every epoch; None where it is missing or not finite.

    >>> read_curve([{"epoch": 1, "validation_nll": 0.5}, {"epoch": 2, "validation_nll": float("inf")}])
    [0.5, None]
    """
    name = next((name for name in SCORES if any(name in row for row in history)), "")
    found = [row.get(name, math.nan) for row in history]
    return [value if math.isfinite(value) else None for value in found]


class Pruner:
    """Says after which epoch a trial is to be stopped.

    No trial is stopped in the first epochs, a third of the shortest curve that it is compared with.

    Args:
        others: the learning curves of the finished trials that it is compared with; without any, it is never stopped.

    >>> Pruner([[0.9, 0.5, 0.4], [0.9, 0.7, 0.6], [0.9, 0.8, 0.9]]).find_last_epoch([0.9, 0.8, 0.7])
    2
    """

    def __init__(self, others: Sequence[Curve]) -> None:
        warmup = min(map(len, others), default=0) // 3
        with quiet_optuna() as optuna:
            pruner = optuna.pruners.MedianPruner(n_startup_trials=1, n_warmup_steps=warmup + 1)
            study = optuna.create_study(direction="minimize", pruner=pruner)
            for other in others:
                values = {epoch: restore_number(score) for epoch, score in enumerate(other, 1)}
                study.add_trial(optuna.trial.create_trial(value=0.0, intermediate_values=values))
            self.trial = study.ask()
        self.reported = 0
        self.last: int | None = None

    def find_last_epoch(self, curve: Curve) -> int | None:
        """The epoch after which the trial is to be stopped, None if it is not; `curve` has the scores of all epochs so far."""
        while self.last is None and self.reported < len(curve):
            self.trial.report(restore_number(curve[self.reported]), self.reported + 1)
            self.reported += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, where all scores are NaN
                if self.trial.should_prune():
                    self.last = self.reported
        return self.last


class TrialPruning(Checkpoint):
    """Stops a trial when its `pruner` says so. Lightning runs Checkpoint callbacks last, when the epoch's row is there."""

    def __init__(self, pruner: Pruner) -> None:
        self.pruner = pruner

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.on_train_epoch_end(trainer, module)  # the run may have been killed after its last epoch

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        if self.pruner.find_last_epoch(read_curve(module.history)) is not None:
            trainer.should_stop = True


@contextlib.contextmanager
def quiet_optuna() -> Iterator[Any]:
    """Optuna, without its log messages and warnings inside the block: it announces every study."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"optuna\..*")
            yield optuna
    finally:
        optuna.logging.set_verbosity(before)
