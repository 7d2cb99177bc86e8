"""Telling rows of another kind from one's own by a score of uncertainty that should be higher for them.

AUROC = P(score of another > score of one's own) + ½ P(equal)
FPR95 = the share of one's own rows that are rejected at the threshold which rejects 95 % of the others
"""

from typing import Literal

import torch
from torch import Tensor

from ..core.predictive import Predictive

Score = Literal["confidence", "entropy", "mutual-information"]


def uncertainty(p: Predictive, by: Score = "confidence") -> Tensor:
    """How unsure the ensemble is of every row, `[N]`: minus its confidence, its entropy, or what its members differ about."""
    if by == "confidence":
        return -p.confidence
    if by == "entropy":
        return p.entropy
    if by == "mutual-information":
        return p.mutual_information
    raise ValueError(f"by must be 'confidence', 'entropy' or 'mutual-information', got {by!r}")


def auroc(own: Tensor, others: Tensor) -> float:
    """By ranks (Mann–Whitney), so that ties count half.

    >>> auroc(torch.tensor([0.1, 0.2]), torch.tensor([0.2, 0.9]))
    0.875
    """
    _require(own, others)
    scores = torch.cat([others.flatten(), own.flatten()]).double()
    _, place, count = scores.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    ranks = (last - (count - 1) / 2)[place]  # the mean rank of a tie, counted from 1
    n, m = others.numel(), own.numel()
    return ((ranks[:n].sum() - n * (n + 1) / 2) / (n * m)).item()


def fpr95(own: Tensor, others: Tensor) -> float:
    """At the highest threshold that still rejects 95 % of the others."""
    _require(own, others)
    ordered = others.flatten().double().sort(descending=True).values
    threshold = ordered[-(-95 * len(ordered) // 100) - 1]
    return (own.flatten().double() >= threshold).double().mean().item()


def _require(own: Tensor, others: Tensor) -> None:
    if not own.numel() or not others.numel():
        raise ValueError(f"both kinds need rows, got {own.numel()} of one's own and {others.numel()} others")
