"""Stops a run whose validation score no longer improves, and keeps the best weights."""

from typing import Any

import lightning as L
import torch

from .lightning_module import TrainingModule

SCORES = ("nll", "pinball", "rmse")
"""What decides: the first of them that the validation rows have."""


class EarlyStopping(L.Callback):
    """Stops after `patience` epochs without a lower validation NLL (pinball loss, RMSE), and remembers the weights of the best.

    Lightning's callback of this name keeps no weights: it relies on a second callback's files, of which a resumed run may have
    lost the best one. Here the best weights are part of the checkpoint, so that a resumed run ends as an uninterrupted one.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.score, self.epoch, self.waited = float("inf"), 0, 0
        self.weights: dict[str, torch.Tensor] = {}

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        trainer.should_stop = self.waited >= self.patience  # the run may have been killed after its last epoch

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        score = next((module.scores[name] for name in SCORES if name in module.scores), float("inf"))
        if score < self.score:
            self.score, self.epoch, self.waited = score, trainer.current_epoch + 1, 0
            self.weights = {name: value.detach().clone() for name, value in module.gather_state().items()}
        else:
            self.waited += 1
        trainer.should_stop = self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "epoch": self.epoch, "waited": self.waited, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.score, self.epoch, self.waited, self.weights = (state[key] for key in ("score", "epoch", "waited", "weights"))
