"""The bound and log α after each tenth of a training, which show whether it has converged.

    bound(θ) = Σ_n (1/K) Σ_k log p(y_n | x_n, w_k) − KL,   w_k ~ q_θ,  K = 10

It is that of the first training rows, as many as are asked for, with the data term times N / rows.
"""

from typing import Any

import lightning as L
import torch
from torch import Tensor

from ...core.ensemble import Ensemble
from ...core.modes import copy_for_evaluation
from ...core.seeds import set_seed
from ..recipe import Json
from .phase_transition import read_log_alphas

DRAWS, TIMES, CHUNK = 10, 10, 1000


@torch.no_grad()
def measure_bound(ensemble: Ensemble, x: Tensor, y: Tensor, rows: int | None = None, seed: int = 0) -> Json:
    """Return `data` and `kl` of an ensemble's bound in nats; the ensemble and the global generator stay as they were.

    Args:
        ensemble: of any method; where it draws, ten draws are taken.
        x, y: training rows and their classes, `[B, …]` and `[B]`.
        rows: N, if these rows stand for more: the data term is multiplied by N / B.
        seed: of the draws.
    """
    twin: Any = copy_for_evaluation(ensemble)
    if twin.sampled:
        twin.samples = DRAWS
    data = 0.0
    with torch.random.fork_rng(devices=[]):
        set_seed(seed)
        for inputs, labels in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            outputs = twin(inputs)  # [M, B, C]
            data += outputs.double().log_softmax(-1)[:, torch.arange(len(labels)), labels].mean(0).sum().item()
        kl = float(ensemble.penalty()) if ensemble.has_penalty else 0.0
    return {"data": data * (rows or len(y)) / len(y), "kl": kl}


class BoundTracker(L.Callback):
    """Records `epoch`, `data`, `kl` and `log_alpha` by layer after each tenth of the epochs, or after each epoch of fewer.

    The draws are the same every time, so that a bound of a few nats moves by what was learnt and not by their noise.
    """

    def __init__(self, x: Tensor, y: Tensor, total: int, epochs: int) -> None:
        self.x, self.y, self.total = x, y, total
        self.epochs = {max(1, round(epochs * tenth / TIMES)) for tenth in range(1, TIMES + 1)}
        self.rows: list[Json] = []

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        epoch, ensemble = trainer.current_epoch + 1, module.ensemble
        if epoch in self.epochs:
            assert isinstance(ensemble, Ensemble)
            bound = measure_bound(ensemble, self.x, self.y, self.total)
            self.rows.append({"epoch": epoch} | bound | {"log_alpha": read_log_alphas(ensemble)})

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])
