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
from .phases import Phases
from .settings import Settings

NAMES = {"accuracy": "acc", "nll": "NLL", "ece": "ECE", "rmse": "RMSE", "pinball": "pinball"}


def format_scores(scores: dict[str, float], names: dict[str, str] = NAMES) -> str:
    """Return scores as one line, with short names.

    >>> format_scores({"accuracy": 0.9876, "nll": 0.0512, "ece": 0.004})
    'acc 98.76%  NLL 0.051  ECE 0.4%'
    """
    forms = {"accuracy": lambda v: f"{100 * v:.2f}%", "ece": lambda v: f"{100 * v:.1f}%"}
    parts = [f"{names.get(name, name)} {forms.get(name, lambda v: f'{v:.3f}')(value)}" for name, value in scores.items()]
    return "  ".join(parts)


def select_scores(scores: dict[str, float]) -> dict[str, float]:
    """Return the scores that have a short name."""
    return {name: value for name, value in scores.items() if name in NAMES}


def describe_epoch(epoch: int, phases: Phases | None, settings: Settings) -> str:
    """Return where a run is, with its phase if it has phases, and "≤" before a number of epochs that may still become smaller.

    >>> describe_epoch(3, None, Settings(epochs=10))
    'epoch 3/10'
    >>> from pluribus.training.phases import plan_phases
    >>> auto = Settings(epochs="auto", max_epochs=40)
    >>> describe_epoch(3, plan_phases([{"validation_nll": 0.5}, {"validation_nll": 0.4}], auto), auto)
    'epoch 3/≤40 stable'
    """
    if phases is None:
        return f"epoch {epoch}/{settings.most_epochs}"
    known = phases.has_fallen or settings.epochs != "auto"
    return f"epoch {epoch}/{'' if known else '≤'}{phases.epochs} {phases.name_phase(epoch - 1)}"


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
        steps = module.epochs * len(module.train_batches)
        self.task = self.progress.add_task("", total=steps, completed=trainer.global_step, scores="")
        self.draw(trainer, module)

    def on_train_batch_end(self, trainer: L.Trainer, module: L.LightningModule, *_: Any) -> None:
        if self.progress is not None and time.monotonic() - self.drawn > 0.1:
            self.draw(trainer, module)

    def draw(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        assert self.progress is not None
        epoch = min(trainer.current_epoch + 1, module.epochs)
        scores = f"loss {module.last_loss:.3f}  " if module.last_loss == module.last_loss else ""
        self.progress.update(
            self.task,
            completed=trainer.global_step,
            total=module.epochs * len(module.train_batches),
            description=describe_epoch(epoch, module.phases, module.settings),
            scores=scores + format_scores(select_scores(module.scores)),
        )
        self.drawn = time.monotonic()

    def on_validation_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if self.progress is not None:
            self.draw(trainer, module)

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        if self.progress is None and trainer.is_global_zero:
            row = module.history[-1]
            line = f"{describe_epoch(int(row['epoch']), module.phases, module.settings)}  loss {row['loss']:.3f}  "
            print(
                f"{line}{format_scores(select_scores(module.scores))}  {time.monotonic() - self.began:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    def on_train_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.close()

    def on_exception(self, trainer: L.Trainer, module: L.LightningModule, exception: BaseException) -> None:
        self.close()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None
