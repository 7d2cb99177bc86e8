"""Sums over batches, from which the metrics follow: memory does not grow with the rows, and processes add theirs up."""

import torch
from torch import Tensor

from ..core.predictive import Predictive, Task

BINS = 15


class Tally:
    """What to count of a classification (rows, right answers, −log p, and per bin of confidence) or a regression.

    >>> tally = Tally("classification")
    >>> tally.add(Predictive(torch.tensor([[[9.0, 0.0], [9.0, 0.0]]])), torch.tensor([0, 1]))
    >>> round(tally.scores()["accuracy"], 3)
    0.5
    """

    def __init__(self, task: Task, device: torch.device | None = None) -> None:
        self.task = task
        size = 3 + 3 * BINS if task == "classification" else 2
        self.sums = torch.zeros(size, dtype=torch.double, device=device)

    def add(self, p: Predictive, targets: Tensor) -> None:
        if self.task == "regression":
            errors = (p.mean.double() - targets.view_as(p.mean).double()).square().reshape(len(p), -1).mean(1)
            self._count(torch.stack([errors.new_tensor(len(p)), errors.sum()]))
            return
        log_probs = p.log_probs
        top, labels = log_probs.max(1)
        confidence = top.exp().double().flatten()
        right = (labels == targets.view_as(labels)).double().flatten()
        nll = -log_probs.gather(1, targets.long().view_as(labels).unsqueeze(1)).double()
        index = (confidence * BINS).ceil().long().clamp(1, BINS) - 1
        bins = confidence.new_zeros(3, BINS)
        bins.index_add_(1, index, torch.stack([torch.ones_like(confidence), right, confidence]))
        self._count(torch.cat([torch.stack([right.new_tensor(right.numel()), right.sum(), nll.sum()]), bins.flatten()]))

    def _count(self, sums: Tensor) -> None:
        self.sums += sums.to(self.sums.device)

    def scores(self) -> dict[str, float]:
        """Accuracy, NLL and ECE; of a regression, the root of the mean squared error."""
        rows = self.sums[0].item()
        if rows == 0:
            return {}
        if self.task == "regression":
            return {"rmse": (self.sums[1] / rows).sqrt().item()}
        _, right, confidence = self.sums[3:].view(3, BINS)
        return {
            "accuracy": (self.sums[1] / rows).item(),
            "nll": (self.sums[2] / rows).item(),
            "ece": ((right - confidence).abs().sum() / rows).item(),
        }
