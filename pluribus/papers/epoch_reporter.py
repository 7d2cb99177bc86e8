"""How far a training of a recipe is, for the progress bar."""

import lightning as L

from .recipe import Workspace


class EpochReporter(L.Callback):
    """Reports how far a training is."""

    def __init__(self, workspace: Workspace, epochs: int) -> None:
        self.workspace, self.epochs = workspace, epochs

    def on_train_epoch_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.workspace.report(f"epoch {trainer.current_epoch + 1}/{self.epochs}")
