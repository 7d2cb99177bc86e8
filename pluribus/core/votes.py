"""The classes that members vote for, and how often they differ."""

import torch
from torch import Tensor


def count_votes(log_probs: Tensor) -> Tensor:
    """How many members choose each class: `[M, B, C, …]` → `[B, C, …]`. One whose answer is not finite chooses none."""
    top, labels = log_probs.max(2)
    labels, votes = labels.transpose(0, 1), (~top.isnan()).long().transpose(0, 1)  # [B, M, …]
    return labels.new_zeros(log_probs.shape[1:]).scatter_add_(1, labels, votes)


def compute_disagreement(votes: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """The share of pairs of `count` members that differ, from their votes `[B, C, …]` → `[B, …]`; NaN if a vote is missing."""
    equal = (votes * (votes - 1)).sum(1).to(dtype)  # ordered pairs that agree
    differ = 1 - equal / (count * (count - 1)) if count > 1 else torch.zeros_like(equal)
    return differ.masked_fill(votes.sum(1) < count, torch.nan)
