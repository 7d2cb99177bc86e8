"""An ensemble and the rows to evaluate it on, batch by batch, so that memory does not grow with their number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.modes import copy_for_evaluation
from ..core.predictive import Predictive
from ..core.seeds import derive_seed, set_seed
from ..data import Data
from ..data.batches import TensorBatches
from ..data.dataset import Part
from ..metrics.streaming import Tally

EVALUATION_SEED = 7
"""Which stream of the run's seed the noise of an evaluation is drawn from."""
BATCH_ROWS = 512


@dataclass(frozen=True)
class EvaluationCase:
    """An ensemble, the rows to evaluate it on, and the seed of its noise. `report` is called with the rows of each batch."""

    ensemble: Ensemble
    data: Data
    part: Part
    seed: int = 0
    report: Callable[[int], None] | None = None

    def predict_batches(self, part: Part | None = None) -> Iterator[tuple[Predictive, Tensor]]:
        """Predictions and targets of each batch; those of a regression are in the units of its targets."""
        ensemble, preparation, part = self.ensemble, self.data.preparation, part or self.part
        like, executor = next(ensemble.parameters()), ensemble.executor
        with torch.random.fork_rng(devices=[]):
            if len(part):  # the size of a batch depends on where members part, which two rows show
                rows = next(iter(TensorBatches(part, 2, preparation))).x.to(like.device, like.dtype)
                executor.prepare(copy_for_evaluation(ensemble), rows)
            size = min(BATCH_ROWS, executor.choose_chunk_rows(ensemble))
            done = 0
            for number, (x, y, _) in enumerate(TensorBatches(part, size, preparation)):
                set_seed(derive_seed(self.seed, EVALUATION_SEED, number))
                p, y = ensemble.predict(x.to(like.device, like.dtype), batch_size=size), y.to(like.device)
                if ensemble.task == "regression":  # the targets as they were read: scaling them back would lose digits
                    mean, std = preparation.target
                    p, y = p.rescale(std, mean), part.y[done : done + len(y)]
                    y = y.to(like.device)
                done += len(y)
                yield p, y
                if self.report is not None:
                    self.report(len(y))

    def tally_scores(self, part: Part | None = None) -> Tally:
        """The sums from which accuracy, NLL and ECE (or RMSE) follow."""
        # An evaluation computes the calibrated score from many random halves.
        has_noise, has_quantiles = self.ensemble.noise is not None, bool(self.ensemble.quantile_levels)
        tally = Tally(self.ensemble.task, calibrated=False, has_noise=has_noise, has_quantiles=has_quantiles)
        for p, y in self.predict_batches(part):
            tally.add(p, y)
        return tally

    def sample_rows(self, rows: int) -> Part:
        """A random sample of `rows` rows, the same for every run. Some sets have their easy rows first."""
        if rows >= len(self.part):
            return self.part
        order = torch.randperm(len(self.part), generator=torch.Generator().manual_seed(0))
        return self.part.take_rows(order[:rows].sort().values)

    @property
    def members(self) -> int:
        """The number of members in evaluation."""
        return self.ensemble.count_members(training=False)

    @property
    def is_sampled(self) -> bool:
        """Whether any part of the ensemble draws new noise for every prediction."""
        return any(isinstance(part, Ensemble) and part.sampled for part in self.ensemble.modules())
