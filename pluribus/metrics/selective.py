"""Selective classification: the model answers only the rows it is most confident of. Risk against coverage.

Rows are answered in the order of their confidence. At coverage n/N the risk is the error among the n most confident rows, and

    AURC = (1/N) Σ_n risk_n

Geifman & El-Yaniv, "Selective Classification for Deep Neural Networks", 2017. Rows of equal confidence have no order: each gets
the mean error of its tie, so that the curve does not depend on how the rows were stored.
"""

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from .classification import find_correct


def risk_coverage(p: Predictive | PredictiveSummary, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The share of rows that is answered, and the error among them, from the most confident row to all rows.

    Args: a prediction of B rows; `targets` `[B]`. Returns: coverage `[B]` and risk `[B]`.

    >>> p = Predictive(torch.tensor([[[0.9, 0.1], [0.6, 0.4]]]).log())
    >>> risk_coverage(p, torch.tensor([0, 1]))[1]
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    return risk_coverage_curve(p.confidence.flatten(), 1 - find_correct(p, targets).flatten())


def risk_coverage_curve(confidence: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor]:
    """`risk_coverage` of confidences `[N]` and errors `[N]`. The risk is NaN if a confidence is: there is no order then."""
    confidence, wrong = confidence.double(), wrong.double()
    wrong = wrong.masked_fill(confidence.isnan().any(), torch.nan)
    order = confidence.argsort(descending=True)
    rows = torch.arange(1, len(wrong) + 1, dtype=torch.double, device=wrong.device)
    return rows / len(wrong), average_ties(wrong, confidence)[order].cumsum(0) / rows


def average_ties(values: Tensor, confidence: Tensor) -> Tensor:
    """Replace the value of every row by the mean over the rows of equal confidence.

    Args: `values` `[N]` and `confidence` `[N]`. Returns: `[N]` in double precision.

    >>> average_ties(torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0.7, 0.7, 0.9])).tolist()
    [0.5, 0.5, 1.0]
    """
    _, tie, count = confidence.unique(return_inverse=True, return_counts=True)
    sums = torch.zeros(len(count), dtype=torch.double, device=values.device).index_add(0, tie, values.double())
    return (sums / count)[tie]


def aurc(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """The area under the risk–coverage curve: an error among the most confident rows costs most.

    Args: a prediction of B rows; `targets` `[B]`. Returns: a number from 0 to 1, smaller is better.

    >>> aurc(Predictive(torch.tensor([[[0.9, 0.1], [0.6, 0.4]]]).log()), torch.tensor([0, 1]))
    0.25
    """
    return risk_coverage(p, targets)[1].mean().item()


def accuracy_at_coverage(p: Predictive | PredictiveSummary, targets: Tensor, coverage: float = 0.8) -> float:
    """The accuracy on the most confident share of the rows, of at least one row.

    Args: a prediction of B rows; `targets` `[B]`; `coverage` above 0 and at most 1. Raises: ValueError if it is not.

    >>> accuracy_at_coverage(Predictive(torch.tensor([[[0.9, 0.1], [0.6, 0.4]]]).log()), torch.tensor([0, 1]), 0.5)
    1.0
    """
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    risk = risk_coverage(p, targets)[1]
    return 1 - risk[max(round(coverage * len(risk)), 1) - 1].item()
