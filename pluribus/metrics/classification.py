"""How right an ensemble is, and how well it knows it."""

import torch
from torch import Tensor

from ..core.predictive import Predictive


def accuracy(p: Predictive, targets: Tensor) -> float:
    """The share of rows whose most probable class is the target."""
    return (p.labels == targets.view_as(p.labels)).double().mean().item()


def nll(p: Predictive, targets: Tensor) -> float:
    """The mean of −log p(target), p the average of the members' probabilities."""
    return p.nll(targets).double().mean().item()


def ece(p: Predictive, targets: Tensor, bins: int = 15) -> float:
    """Expected calibration error: how far confidence is from accuracy, bin by bin, weighted by the rows in a bin.

        ECE = Σ_b (n_b / n) · |accuracy_b − confidence_b|,     bin b = (b/bins, (b+1)/bins]

    Guo et al., "On Calibration of Modern Neural Networks", 2017, eq. 3.
    """
    return calibration_gap(p.confidence.flatten(), (p.labels == targets.view_as(p.labels)).flatten(), bins)


def calibration_gap(confidence: Tensor, right: Tensor, bins: int = 15) -> float:
    """The same of confidences `[N]` and right answers `[N]`."""
    confidence, right = confidence.double(), right.double()
    index = (confidence * bins).ceil().long().sub(1).clamp(0, bins - 1)
    gaps = torch.zeros(bins, dtype=torch.double, device=confidence.device).index_add(0, index, right - confidence)
    return gaps.abs().sum().item() / max(len(confidence), 1)
