"""Accuracy and negative log-likelihood of classifications."""

from torch import Tensor

from ..core.predictive import Predictive


def accuracy(p: Predictive, targets: Tensor) -> float:
    """The share of rows whose most probable class is the target.

    Args: a prediction of B rows; `targets` `[B]` or `[B, 1]`. Returns: a number from 0 to 1.

    >>> import torch
    >>> accuracy(Predictive(torch.tensor([[[2.0, 0.0], [2.0, 0.0]]])), torch.tensor([0, 1]))
    0.5
    """
    return (p.labels == targets.view_as(p.labels)).double().mean().item()


def nll(p: Predictive, targets: Tensor) -> float:
    """The mean of −log p(target), where p is the average of the members' probabilities.

    Args: a prediction of B rows; `targets` `[B]` or `[B, 1]`. Returns: a number from 0, infinite if a target is impossible.

    >>> import torch
    >>> round(nll(Predictive(torch.zeros(3, 1, 2)), torch.tensor([1])), 3)  # log 2
    0.693
    """
    return p.nll(targets).double().mean().item()
