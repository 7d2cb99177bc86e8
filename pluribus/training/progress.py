"""The progress bar of a training run: loss, validation scores and the time left."""

import sys
import time
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import Checkpoint
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ..core.terminal import create_console
from .lightning_module import TrainingModule

NAMES = {"accuracy": "acc", "nll": "NLL", "ece": "ECE", "rmse": "RMSE"}


def format_scores(scores: dict[str, float], names: dict[str, str] = NAMES) -> str:
    """Return scores as one line, with short names.

    >>> format_scores({"accuracy": 0.9876, "nll": 0.0512, "ece": 0.004})
    'acc 98.76%  NLL 0.051  ECE 0.4%'
    """
    forms = {"accuracy": lambda v: f"{100 * v:.2f}%", "ece": lambda v: f"{100 * v:.1f}%"}
    parts = [f"{names.get(name, name)} {forms.get(name, lambda v: f'{v:.3f}')(value)}" for name, value in scores.items()]
    return "  ".join(parts)


class ProgressBar(Checkpoint):  # Lightning calls callbacks of this type last, when the history has the epoch's row
    """Shows one bar for the whole run on a terminal, redrawn at most ten times a second; elsewhere it prints a line an epoch.

    Lightning's RichProgressBar begins anew in every epoch: it cannot tell when the run ends, and writes no lines into a log.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or create_console(stderr=True)
        self.progress: Progress | None = None
        self.task = TaskID(0)
        self.drawn = self.began = 0.0

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        self.began = time.monotonic()
        if not trainer.is_global_zero or not self.console.is_terminal:
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(None),
            TextColumn("{task.fields[scores]}", markup=False),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=self.console, expand=True)
        self.progress.start()
        steps = module.settings.epochs * len(module.train_batches)
        self.task = self.progress.add_task("", total=steps, completed=trainer.global_step, scores="")
        self.draw(trainer, module)

    def on_train_batch_end(self, trainer: L.Trainer, module: L.LightningModule, *_: Any) -> None:
        if self.progress is not None and time.monotonic() - self.drawn > 0.1:
            self.draw(trainer, module)

    def draw(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        assert self.progress is not None
        epochs = module.settings.epochs
        epoch = min(trainer.current_epoch + 1, epochs)
        scores = f"loss {module.last_loss:.3f}  " if module.last_loss == module.last_loss else ""
        self.progress.update(
            self.task,
            completed=trainer.global_step,
            description=f"epoch {epoch}/{epochs}",
            scores=scores + format_scores(module.scores),
        )
        self.drawn = time.monotonic()

    def on_validation_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if self.progress is not None:
            self.draw(trainer, module)

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        if self.progress is None and trainer.is_global_zero:
            row = module.history[-1]
            line = f"epoch {row['epoch']}/{module.settings.epochs}  loss {row['loss']:.3f}  "
            print(f"{line}{format_scores(module.scores)}  {time.monotonic() - self.began:.0f} s", file=sys.stderr, flush=True)

    def on_train_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.close()

    def on_exception(self, trainer: L.Trainer, module: L.LightningModule, exception: BaseException) -> None:
        self.close()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None
