"""Answering only where one is sure: risk against coverage.

Rows are answered in the order of their confidence. At coverage n/N the risk is the error among the n most confident rows, and

    AURC = (1/N) Σ_n risk_n

Geifman & El-Yaniv, "Selective Classification for Deep Neural Networks", 2017. Rows of equal confidence have no order: each gets
the mean error of its tie, so that the curve does not depend on how the rows were stored.
"""

import torch
from torch import Tensor

from ..core.predictive import Predictive


def risk_coverage(p: Predictive, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The share of rows that is answered, and the error among them: both `[N]`, from the surest row to all of them."""
    return curve(p.confidence.flatten(), (p.labels != targets.view_as(p.labels)).flatten())


def curve(confidence: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor]:
    """The same of confidences `[N]` and errors `[N]`."""
    confidence, wrong = confidence.double(), wrong.double()
    order = confidence.argsort(descending=True)
    rows = torch.arange(1, len(wrong) + 1, dtype=torch.double, device=wrong.device)
    return rows / len(wrong), evened(wrong, confidence)[order].cumsum(0) / rows


def evened(values: Tensor, confidence: Tensor) -> Tensor:
    """Each row's value, or where several are equally sure, their mean: `[N]`."""
    _, tie, count = confidence.unique(return_inverse=True, return_counts=True)
    sums = torch.zeros(len(count), dtype=torch.double, device=values.device).index_add(0, tie, values.double())
    return (sums / count)[tie]


def aurc(p: Predictive, targets: Tensor) -> float:
    """The area under the risk–coverage curve: smaller is better, and an error among the surest costs most."""
    return risk_coverage(p, targets)[1].mean().item()


def accuracy_at_coverage(p: Predictive, targets: Tensor, coverage: float = 0.8) -> float:
    """The accuracy on the most confident share of the rows, of at least one row."""
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    risk = risk_coverage(p, targets)[1]
    return 1 - risk[max(round(coverage * len(risk)), 1) - 1].item()
