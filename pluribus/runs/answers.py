"""What a trained ensemble answers, batch by batch, so that memory does not grow with the rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.modes import evaluation_mode
from ..core.pace import laid_out
from ..core.predictive import Predictive
from ..core.seeds import derive_seed, set_seed
from ..data import Data
from ..data.batches import TensorBatches
from ..data.dataset import Part
from ..metrics.streaming import Tally

JUDGE = 7  # a place of the seed
ROWS = 512


@dataclass(frozen=True)
class Case:
    """An ensemble, the rows to judge it by, and the seed of its noise. `report` is told how many rows are done."""

    ensemble: Ensemble
    data: Data
    part: Part
    seed: int = 0
    report: Callable[[int], None] | None = None

    @torch.no_grad()
    def answers(self, part: Part | None = None) -> Iterator[tuple[Predictive, Tensor]]:
        """Predictions and targets; a regression's in the units of its targets."""
        ensemble, preparation = self.ensemble, self.data.preparation
        like = next(ensemble.parameters())
        with evaluation_mode(ensemble), torch.random.fork_rng(devices=[]):
            part = part or self.part
            if len(part):  # how many rows to take at once is known only then
                ensemble.ready(next(iter(TensorBatches(part, 2, preparation))).x.to(like.device, like.dtype))
            for number, (x, y, _) in enumerate(TensorBatches(part, min(ROWS, ensemble.at_once), preparation)):
                set_seed(derive_seed(self.seed, JUDGE, number))
                outputs = ensemble(laid_out(ensemble, x.to(like.device, like.dtype)))
                y = y.to(like.device)
                if ensemble.task == "regression":
                    outputs, y = preparation.unscale_targets(outputs), preparation.unscale_targets(y)
                yield Predictive(outputs, ensemble.task), y
                if self.report is not None:
                    self.report(len(y))

    def on(self, part: Part | None = None) -> Tally:
        """The sums from which accuracy, NLL and ECE (or RMSE) follow."""
        tally = Tally(self.ensemble.task)
        for p, y in self.answers(part):
            tally.add(p, y)
        return tally

    def sample(self, rows: int) -> Part:
        """So many rows, the same ones for every run: not the first, as some sets have their easy ones there."""
        if rows >= len(self.part):
            return self.part
        order = torch.randperm(len(self.part), generator=torch.Generator().manual_seed(0))
        return self.part.rows(order[:rows].sort().values)

    @property
    def members(self) -> int:
        with evaluation_mode(self.ensemble):
            return self.ensemble.members

    @property
    def sampled(self) -> bool:
        """Whether noise is drawn anew for every answer, in any part of it."""
        return any(isinstance(part, Ensemble) and part.sampled for part in self.ensemble.modules())
