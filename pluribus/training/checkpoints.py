"""When checkpoints are written, which are kept, and which a run is resumed from."""

import time
import warnings
from pathlib import Path
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Checkpoint
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.errors import FileError
from ..core.files import remove_leftovers
from ..core.weight_checks import find_non_finite
from .checkpoint_files import read_checkpoint
from .interrupts import StopRequest
from .lightning_module import Diverged
from .settings import Settings, parse_interval

KEPT = 2


class CheckpointWriter(Checkpoint):  # Lightning calls callbacks of this type after all others
    """Writes `step-N.safetensors` at the end of every epoch and as often as the settings say; keeps the last two.

    Lightning's ModelCheckpoint would be needed twice, for the epochs and for the interval. Each keeps its list of files in the
    checkpoint itself, where after a kill it lags behind the files on disk; and neither skips damaged files.
    """

    def __init__(self, folder: Path, settings: Settings, stop_request: StopRequest) -> None:
        self.folder, self.stop_request = folder, stop_request
        self.unit, self.amount = parse_interval(settings.checkpoint_every)
        self.last = time.monotonic()

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.last = time.monotonic()
        # Lightning has installed handlers of its own by now. They communicate with other processes, which can hang.
        self.stop_request.install_handlers()
        if trainer.is_global_zero:
            remove_leftovers(self.folder)

    def on_train_batch_end(self, trainer: L.Trainer, module: L.LightningModule, *_: Any) -> None:
        if trainer.fit_loop.epoch_loop.batch_progress.is_last_batch:
            return  # `on_train_epoch_end` follows, and saves
        must_stop = self.stop_request.is_made(trainer)
        if must_stop or self.is_due(trainer):
            self.save(trainer)
        if must_stop:
            self.stop_request.stop(self.folder)

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.save(trainer)
        if self.stop_request.is_made(trainer, now=True):
            self.stop_request.stop(self.folder)

    def is_due(self, trainer: L.Trainer) -> bool:
        if self.unit == "steps":
            return trainer.global_step % int(self.amount) == 0
        is_late = time.monotonic() - self.last >= self.amount
        if trainer.world_size == 1:
            return is_late
        # All processes must agree, but their clocks differ: every 20 steps the first process decides.
        return trainer.global_step % 20 == 0 and bool(trainer.strategy.broadcast(is_late))

    def save(self, trainer: L.Trainer) -> None:
        path = self.folder / f"step-{trainer.global_step:08d}.safetensors"
        trainer.save_checkpoint(path)
        if trainer.is_global_zero:
            # Files of later steps are damaged ones that the run could not resume from: they do not count.
            for old in [each for each in list_checkpoints(self.folder) if each.name <= path.name][KEPT:]:
                old.unlink(missing_ok=True)
        self.last = time.monotonic()


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoint files in a folder, the newest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


def find_newest_checkpoint(folder: Path, ensemble: Ensemble) -> Path | None:
    """Return the newest checkpoint of the ensemble that is sound, or None if there is none at all.

    Damaged checkpoints, and those whose weights are NaN or infinite, are skipped with a warning.

    Raises:
        Diverged: there are checkpoints that can be read, and the weights in each of them are NaN or infinite.
    """
    broken: list[str] = []
    for path in list_checkpoints(folder):
        try:
            found = find_diverged(path, ensemble)
        except FileError as error:
            warnings.warn(f"{error}; going back to the one before", stacklevel=2)
            continue
        if found is not None:
            broken.append(f"{found} holds NaN or infinite numbers in {path}")
            continue
        for reason in broken:
            warnings.warn(f"{reason}; going back to the one before", stacklevel=2)
        return path
    if broken:
        raise Diverged(
            f"the run has diverged: {broken[0]}, and there is no sound checkpoint before it. Train anew, with a lower lr, "
            "warmup or clip"
        )
    return None


def find_diverged(path: Path, ensemble: Ensemble) -> str | None:
    """Return the name of the first weight in a checkpoint that is NaN or infinite, or None. Raises FileError."""
    weights = read_checkpoint(path).get("state_dict")
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise FileError(f"{path} is no checkpoint of a run: it has no weights")
    return find_non_finite(ensemble, {str(name).removeprefix("ensemble."): value for name, value in weights.items()})
