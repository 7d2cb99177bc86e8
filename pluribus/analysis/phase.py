"""When a noisy network becomes a variance network: the accuracy of its answers, and its log α, epoch by epoch.

    mean           the mean weights, no noise
    sample         one draw
    average        K draws, probabilities averaged
    zero-mean      one draw with the means set to zero; "zero-mean average" K of them

Before the transition the mean answers well and the zero-mean draws at chance, afterwards the other way round, while the average
hardly changes. `Phases` is a Lightning callback, for `pluribus.fit(…, callbacks=[phases])`; after a kill it goes on with the
run.

Neklyudov et al., "Variance Networks", ICLR 2019, figures 3 and 8.
"""

from dataclasses import dataclass
from typing import Any

import lightning as L
import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.seeds import derive_seed, set_seed

ANSWERS = {"mean": 1, "sample": 1, "average": 0, "zero-mean": 1, "zero-mean average": 0}
"""With how many draws; 0 is as many as the ensemble answers with."""


@torch.no_grad()
def answered(ensemble: Ensemble, x: Tensor, y: Tensor, answer: str, seed: int = 0) -> float:
    """The accuracy of one kind of answer. The ensemble and the global generator stay as they were."""
    if "answer" not in ensemble.settings:
        raise ValueError(f"{type(ensemble.spec).__name__} answers in one way only: phases are for variational dropout")
    noisy: Any = ensemble
    before = noisy.samples, noisy.answer
    with torch.random.fork_rng(devices=[]):
        set_seed(derive_seed(seed, list(ANSWERS).index(answer)))
        try:
            noisy.samples, noisy.answer = ANSWERS[answer] or noisy.samples, answer.removesuffix(" average")
            return (noisy.predict(x).labels == y).double().mean().item()
        finally:
            noisy.samples, noisy.answer = before


def log_alphas(ensemble: Ensemble) -> dict[str, float]:
    """The mean log α of every layer that has one, by name."""
    layers = {name: layer.log_alpha for name, layer in ensemble.net.named_modules() if hasattr(layer, "log_alpha")}
    return {name: value.detach().double().mean().item() for name, value in layers.items() if isinstance(value, Tensor)}


class Phases(L.Callback):
    """Rows of `epoch`, `log_alpha` by layer and the accuracy of every answer, before training and after each epoch."""

    def __init__(self, x: Tensor, y: Tensor, seed: int = 0) -> None:
        self.x, self.y, self.seed = x, y, seed
        self.rows: list[dict[str, Any]] = []

    def on_train_start(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        if not self.rows:
            self.look(lesson, 0)

    def on_train_epoch_end(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        self.look(lesson, trainer.current_epoch + 1)

    def look(self, lesson: L.LightningModule, epoch: int) -> None:
        ensemble = lesson.ensemble
        assert isinstance(ensemble, Ensemble)
        accuracies = {answer: answered(ensemble, self.x, self.y, answer, derive_seed(self.seed, epoch)) for answer in ANSWERS}
        self.rows.append({"epoch": epoch, "log_alpha": log_alphas(ensemble)} | accuracies)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])


@dataclass(frozen=True)
class Transition:
    """Where the mean stopped answering: from the last epoch at which it answered like the average to the first at chance."""

    begins: int
    ends: int


def transition(rows: list[dict[str, Any]], chance: float, like: float = 0.02, near: float = 0.05) -> Transition | None:
    """The transition in rows of `Phases`, or None if there was none.

    The mean must have answered within `like` of the average at some epoch after the first, and afterwards, while the average
    still answers better than half of its best, within `near` of chance, and stay there.

    >>> rows = [{"epoch": e, "mean": m, "average": 0.9} for e, m in enumerate((0.1, 0.89, 0.88, 0.5, 0.1, 0.1))]
    >>> transition(rows, chance=0.1)
    Transition(begins=2, ends=4)
    """
    best = max(row["average"] for row in rows)
    like_average = [i for i, row in enumerate(rows) if row["average"] > best / 2 and row["mean"] >= row["average"] - like]
    at_chance = [i for i, row in enumerate(rows) if row["average"] > best / 2 and row["mean"] <= chance + near]
    lost = [i for i in at_chance if all(later["mean"] <= chance + near for later in rows[i:])]
    if not like_average or not lost or like_average[-1] > lost[0]:
        return None
    return Transition(rows[like_average[-1]]["epoch"], rows[lost[0]]["epoch"])
