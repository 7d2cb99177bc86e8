"""When to write a checkpoint, which to keep, and which to go on from."""

import time
import warnings
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Checkpoint

from ..core.errors import FileError
from .checkpoint_files import read_checkpoint
from .interrupts import StopRequest
from .lightning_module import TrainingModule
from .settings import Settings, parse_interval

KEPT = 2


class CheckpointWriter(Checkpoint):  # Lightning runs these after everything else
    """Writes `step-N.safetensors` at the end of every epoch and as often as the settings say; keeps the last two."""

    def __init__(self, folder: Path, settings: Settings, interrupts: StopRequest) -> None:
        self.folder, self.interrupts = folder, interrupts
        self.unit, self.amount = parse_interval(settings.checkpoint_every)
        self.last = time.monotonic()

    def on_train_start(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        self.last = time.monotonic()
        self.interrupts.listen()  # once more: Lightning's own handler talks to other processes from within, and hangs
        if trainer.is_global_zero:
            for part in self.folder.glob(".step-*"):  # what a kill left half written
                part.unlink(missing_ok=True)

    def on_train_batch_end(self, trainer: L.Trainer, lesson: L.LightningModule, *_: Any) -> None:
        if trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            return  # the end of the epoch is near
        stop = self.interrupts.asked(trainer)
        if stop or self.due(trainer):
            self.save(trainer)
        if stop:
            self.interrupts.stop(self.folder)

    def on_train_epoch_end(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        self.save(trainer)
        if self.interrupts.asked(trainer, now=True):
            self.interrupts.stop(self.folder)

    def due(self, trainer: L.Trainer) -> bool:
        if self.unit == "steps":
            return trainer.global_step % int(self.amount) == 0
        late = time.monotonic() - self.last >= self.amount
        if trainer.world_size == 1:
            return late
        # Clocks differ, and all processes must agree; now and then the first one decides.
        return trainer.global_step % 20 == 0 and bool(trainer.strategy.broadcast(late))

    def save(self, trainer: L.Trainer) -> None:
        path = self.folder / f"step-{trainer.global_step:08d}.safetensors"
        trainer.save_checkpoint(path)
        if trainer.is_global_zero:
            # Later ones were passed over as damaged: they do not count.
            for old in [each for each in list_checkpoints(self.folder) if each.name <= path.name][KEPT:]:
                old.unlink(missing_ok=True)
        self.last = time.monotonic()


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the newest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def find_newest_checkpoint(folder: Path, sound: bool = False) -> Path | None:
    """The newest checkpoint that is whole; if it must be `sound`, with weights that are numbers. Damaged ones are passed over
    with a warning."""
    for path in list_checkpoints(folder):
        try:
            weights = read_checkpoint(path)["state_dict"].values()
        except FileError as error:
            warnings.warn(f"{error}; going back to the one before", stacklevel=2)
            continue
        if not sound or all(bool(weight.isfinite().all()) for weight in weights):
            return path
    return None


class EarlyStopping(L.Callback):
    """Early stopping: remembers the ensemble with the lowest validation score, and stops when none was better for a while."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.score, self.epoch, self.waited = float("inf"), 0, 0
        self.weights: dict[str, torch.Tensor] = {}

    def on_train_start(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        trainer.should_stop = self.waited >= self.patience  # it was killed when it was done

    def on_train_epoch_end(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        assert isinstance(lesson, TrainingModule)
        score = lesson.scores.get("nll", lesson.scores.get("rmse", float("inf")))
        if score < self.score:
            self.score, self.epoch, self.waited = score, trainer.current_epoch + 1, 0
            self.weights = {name: value.detach().clone() for name, value in lesson.state().items()}
        else:
            self.waited += 1
        trainer.should_stop = self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "epoch": self.epoch, "waited": self.waited, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.score, self.epoch, self.waited, self.weights = (state[key] for key in ("score", "epoch", "waited", "weights"))
