"""Out-of-distribution detection: an uncertainty score should be higher for rows that are unlike the training data.

AUROC = P(score of an out-of-distribution row > score of an in-distribution row) + ½ P(equal)
FPR95 = the share of in-distribution rows that are rejected at the threshold which rejects 95 % of the others
"""

import math
from typing import Literal

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary

Score = Literal["confidence", "entropy", "mutual-information"]


def uncertainty(p: Predictive | PredictiveSummary, by: Score = "confidence") -> Tensor:
    """The uncertainty of every row, `[B]`: minus its confidence, its entropy, or its mutual information.

    Raises: ValueError if `by` is none of these scores.

    >>> uncertainty(Predictive(torch.tensor([[[0.8, 0.2]]]).log()))
    tensor([-0.8000])
    """
    if by == "confidence":
        return -p.confidence
    if by == "entropy":
        return p.entropy
    if by == "mutual-information":
        return p.mutual_information
    raise ValueError(f"by must be 'confidence', 'entropy' or 'mutual-information', got {by!r}")


def auroc(in_distribution: Tensor, out_of_distribution: Tensor) -> float:
    """The area under the ROC curve, by ranks (Mann–Whitney), so that ties count half.

    Args: uncertainty scores of the in-distribution rows, `[N]`, and of the out-of-distribution rows, `[K]`.
    Returns: a number from 0 to 1; ½ is chance; NaN if a score is. Raises: ValueError if either has no rows.

    >>> auroc(torch.tensor([0.1, 0.2]), torch.tensor([0.2, 0.9]))
    0.875
    """
    _require_rows(in_distribution, out_of_distribution)
    if _has_nan(in_distribution, out_of_distribution):
        return math.nan
    scores = torch.cat([out_of_distribution.flatten(), in_distribution.flatten()]).double()
    _, place, count = scores.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    ranks = (last - (count - 1) / 2)[place]  # the mean rank of a tie, counted from 1
    n, m = out_of_distribution.numel(), in_distribution.numel()
    return ((ranks[:n].sum() - n * (n + 1) / 2) / (n * m)).item()


def fpr95(in_distribution: Tensor, out_of_distribution: Tensor) -> float:
    """The false positive rate at the highest threshold that still rejects 95 % of the out-of-distribution rows.

    Args: uncertainty scores of the in-distribution rows, `[N]`, and of the out-of-distribution rows, `[K]`.
    Returns: a number from 0 to 1, smaller is better; NaN if a score is. Raises: ValueError if either has no rows.

    >>> fpr95(torch.tensor([0.1, 0.2, 0.3, 0.6]), torch.tensor([0.5, 0.9]))
    0.25
    """
    _require_rows(in_distribution, out_of_distribution)
    if _has_nan(in_distribution, out_of_distribution):
        return math.nan
    ordered = out_of_distribution.flatten().double().sort(descending=True).values
    threshold = ordered[-(-95 * len(ordered) // 100) - 1]
    return (in_distribution.flatten().double() >= threshold).double().mean().item()


def _has_nan(*scores: Tensor) -> bool:
    return any(bool(part.isnan().any()) for part in scores)


def _require_rows(inside: Tensor, outside: Tensor) -> None:
    if not inside.numel() or not outside.numel():
        raise ValueError(
            f"both sets need rows, got {inside.numel()} in-distribution and {outside.numel()} out-of-distribution rows"
        )
