"""Accuracy and negative log-likelihood of classifications."""

import torch
from torch import Tensor

from ..core.answer import IGNORED
from ..core.predictive import Predictive, PredictiveSummary


def accuracy(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """The share of rows whose most probable class is the target.

    Args: a prediction of B rows; `targets` `[B]` or `[B, 1]`; those that are −100 are left out. Returns: a number from 0 to 1;
    NaN if an answer is not finite.

    >>> accuracy(Predictive(torch.tensor([[[2.0, 0.0], [2.0, 0.0]]])), torch.tensor([0, 1]))
    0.5
    """
    return drop_ignored(find_correct(p, targets), targets).mean().item()


def find_correct(p: Predictive | PredictiveSummary, targets: Tensor) -> Tensor:
    """1 for every correct prediction and 0 for the others, `[B, …]` in double; NaN where the answer is not finite.

    >>> find_correct(Predictive(torch.tensor([[[2.0, 0.0], [2.0, 0.0], [torch.nan, 0.0]]])), torch.tensor([0, 1, 1])).tolist()
    [1.0, 0.0, nan]
    """
    labels = p.labels
    return (labels == targets.view_as(labels)).double().masked_fill(labels < 0, torch.nan)


def nll(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """The mean of −log p(target), where p is the average of the members' probabilities.

    Args: a prediction of B rows; `targets` `[B]` or `[B, 1]`; those that are −100 are left out. Returns: a number from 0,
    infinite if a target is impossible.

    >>> round(nll(Predictive(torch.zeros(3, 1, 2)), torch.tensor([1])), 3)  # log 2
    0.693
    """
    return drop_ignored(p.nll(targets), targets).double().mean().item()


def drop_ignored(values: Tensor, targets: Tensor) -> Tensor:
    """The values of all places `[B, …]` but those whose target is −100.

    >>> drop_ignored(torch.tensor([0.5, 0.0]), torch.tensor([2, -100]))
    tensor([0.5000])
    """
    ignored = targets.view_as(values) == IGNORED
    return values[~ignored] if bool(ignored.any()) else values
