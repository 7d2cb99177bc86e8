"""Scores from sums over batches: memory does not grow with the rows, and several processes can add up their sums."""

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary, Task
from .calibration import ConfidenceBins, bin_by_confidence

BINS = 15


class Tally:
    """Sums of a classification (rows, correct rows, −log p, confidence bins) or a regression (rows, squared errors).

    Both count the rows whose answer is not finite; one of them makes every score NaN.

    >>> tally = Tally("classification")
    >>> tally.add(Predictive(torch.tensor([[[9.0, 0.0], [9.0, 0.0]]])), torch.tensor([0, 1]))
    >>> round(tally.scores()["accuracy"], 3)
    0.5
    """

    def __init__(self, task: Task, device: torch.device | None = None) -> None:
        self.task = task
        size = 4 + 3 * BINS if task == "classification" else 3
        self.sums = torch.zeros(size, dtype=torch.double, device=device)

    def add(self, p: Predictive | PredictiveSummary, targets: Tensor) -> None:
        """Add a batch: a prediction of B rows and `targets` `[B]`."""
        if self.task == "regression":
            errors = (p.mean.double() - targets.view_as(p.mean).double()).square().reshape(len(p), -1).mean(1)
            self._add_sums(torch.stack([errors.new_tensor(len(p)), (~p.is_finite).sum(), errors.sum()]))
            return
        log_probs = p.log_probs
        top, labels = log_probs.max(1)
        correct = (labels == targets.view_as(labels)).double().masked_fill(top.isnan(), torch.nan).flatten()
        nll = -log_probs.gather(1, targets.long().view_as(labels).unsqueeze(1)).double()
        bins = bin_by_confidence(top.exp().flatten(), correct, BINS)
        lost = top.isnan().flatten(1).any(1).sum() if top.dim() > 1 else top.isnan().sum()
        self._add_sums(torch.cat([torch.stack([correct.new_tensor(correct.numel()), lost, correct.sum(), nll.sum()]), *bins]))

    def _add_sums(self, sums: Tensor) -> None:
        self.sums += sums.to(self.sums.device)

    @property
    def not_finite(self) -> int:
        """How many of the rows have an answer that is not finite."""
        return int(self.sums[1].item())

    def scores(self) -> dict[str, float]:
        """Accuracy, NLL and ECE of a classification, RMSE of a regression; nothing where no row was added."""
        rows = self.sums[0].item()
        if rows == 0:
            return {}
        if self.task == "regression":
            return {"rmse": (self.sums[2] / rows).sqrt().item()}
        return {
            "accuracy": (self.sums[2] / rows).item(),
            "nll": (self.sums[3] / rows).item(),
            "ece": ConfidenceBins(*self.sums[4:].view(3, BINS)).error,
        }
