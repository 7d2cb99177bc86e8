"""The phase transition, in which a noisy network becomes a variance network: its accuracy and its log α after each epoch.

    mean           the mean weights, no noise
    sample         one draw
    average        K draws, probabilities averaged
    zero-mean      one draw with the means set to zero; "zero-mean average" K of them

Before the transition the mean weights are accurate and the zero-mean draws are at chance; after it, the other way round. The
average hardly changes. `PhaseTracker` is a Lightning callback, for `pluribus.fit(…, callbacks=[tracker])`; its rows are saved
in checkpoints, so they continue after a kill.

Neklyudov et al., "Variance Networks", ICLR 2019, figures 3 and 8.
"""

from dataclasses import dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor

from ...core.ensemble import Ensemble
from ...core.modes import copy_for_evaluation
from ...core.seeds import derive_seed, set_seed

ANSWERS = {"mean": 1, "sample": 1, "average": 0, "zero-mean": 1, "zero-mean average": 0}
"""The number of draws of each kind of answer; 0 means as many as the ensemble uses."""


@torch.no_grad()
def measure_answer(ensemble: Ensemble, x: Tensor, y: Tensor, answer: str, seed: int = 0) -> float:
    """Return the accuracy of one kind of answer; the ensemble and the global generator stay as they were.

    Args:
        ensemble: of variational dropout; other methods have no `answer` setting, and raise a ValueError.
        x, y: B test rows and their classes, `[B, …]` and `[B]`.
        answer: a key of `ANSWERS`.
        seed: of the draws.
    """
    if "answer" not in ensemble.settings:
        raise ValueError(f"{type(ensemble.spec).__name__} answers in one way only: phases are for variational dropout")
    noisy: Any = copy_for_evaluation(ensemble)
    noisy.samples, noisy.answer = ANSWERS[answer] or noisy.samples, answer.removesuffix(" average")
    with torch.random.fork_rng(devices=[]):
        set_seed(derive_seed(seed, list(ANSWERS).index(answer)))
        return (noisy.predict(x).labels == y).double().mean().item()


def read_log_alphas(ensemble: Ensemble) -> dict[str, float]:
    """Return the mean log α of every layer that has one, by the name of the layer."""
    layers = {name: layer.log_alpha for name, layer in ensemble.net.named_modules() if hasattr(layer, "log_alpha")}
    return {name: value.detach().double().mean().item() for name, value in layers.items() if isinstance(value, Tensor)}


class PhaseTracker(L.Callback):
    """Records `epoch`, `log_alpha` by layer and the accuracy of every answer, before training and after each epoch."""

    def __init__(self, x: Tensor, y: Tensor, seed: int = 0) -> None:
        self.x, self.y, self.seed = x, y, seed
        self.rows: list[dict[str, Any]] = []

    def on_train_start(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if not self.rows:
            self.record(module, 0)

    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        self.record(module, trainer.current_epoch + 1)

    def record(self, module: L.LightningModule, epoch: int) -> None:
        ensemble = module.ensemble
        assert isinstance(ensemble, Ensemble)
        accuracies = {
            answer: measure_answer(ensemble, self.x, self.y, answer, derive_seed(self.seed, epoch)) for answer in ANSWERS
        }
        self.rows.append({"epoch": epoch, "log_alpha": read_log_alphas(ensemble)} | accuracies)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])


@dataclass(frozen=True)
class Transition:
    """From the last epoch in which the mean weights are as accurate as the average to the first in which they are at chance."""

    begins: int
    ends: int


def find_transition(rows: list[dict[str, Any]], chance: float, like: float = 0.02, near: float = 0.05) -> Transition | None:
    """Return the transition in the rows of a `PhaseTracker`, or None if there was none.

    There is one if the accuracy of the mean is at most `like` below that of the average in some epoch, is later at most `near`
    above chance, and stays there. Epochs in which the average has at most half of its best accuracy do not count.

    >>> rows = [{"epoch": e, "mean": m, "average": 0.9} for e, m in enumerate((0.1, 0.89, 0.88, 0.5, 0.1, 0.1))]
    >>> find_transition(rows, chance=0.1)
    Transition(begins=2, ends=4)
    """
    best = max(row["average"] for row in rows)
    like_average = [i for i, row in enumerate(rows) if row["average"] > best / 2 and row["mean"] >= row["average"] - like]
    at_chance = [i for i, row in enumerate(rows) if row["average"] > best / 2 and row["mean"] <= chance + near]
    lost = [i for i in at_chance if all(later["mean"] <= chance + near for later in rows[i:])]
    if not like_average or not lost or like_average[-1] > lost[0]:
        return None
    return Transition(rows[like_average[-1]]["epoch"], rows[lost[0]]["epoch"])
