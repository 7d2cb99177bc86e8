"""Whether probabilities mean what they say: binned errors, and one temperature that mends most of it.

    classwise:   for every class, |share of the class − mean probability of it| by bins of that probability; the classes' mean
    adaptive:    the same with bins of equally many rows

Nixon et al., "Measuring Calibration in Deep Learning", 2019; Kumar et al., 2019; Guo et al., 2017 (temperature).
"""

import math

import torch
from torch import Tensor

from ..core.predictive import Predictive
from .selective import evened


def brier(p: Predictive, targets: Tensor) -> float:
    """The squared distance of the probabilities from the truth, summed over classes, averaged over rows: from 0 to 2."""
    return squares(p, targets).double().mean().item()


def squares(p: Predictive, targets: Tensor) -> Tensor:
    """The Brier score of every row, `[B]`: Σ_c p_c² − 2 p_target + 1."""
    probs = p.probs
    truth = targets.long().view_as(p.labels).unsqueeze(1)
    return probs.square().sum(1) - 2 * probs.gather(1, truth).squeeze(1) + 1


def adaptive_ece(p: Predictive, targets: Tensor, bins: int = 15) -> float:
    """ECE with bins of equally many rows (as nearly as they divide), in the order of confidence."""
    return adaptive_gap(p.confidence.flatten(), (p.labels == targets.view_as(p.labels)).flatten(), bins)


def adaptive_gap(confidence: Tensor, right: Tensor, bins: int = 15) -> float:
    """The same of confidences `[N]` and right answers `[N]`. A tie has no order, and is right alike in every bin it reaches."""
    right = evened(right, confidence)
    confidence, order = confidence.double().sort()
    right = right[order]
    index = torch.arange(len(order), device=order.device) * bins // max(len(order), 1)
    gaps = torch.zeros(bins, dtype=torch.double, device=order.device).index_add(0, index, right - confidence)
    return gaps.abs().sum().item() / max(len(order), 1)


def classwise_ece(p: Predictive, targets: Tensor, bins: int = 15) -> float:
    """The calibration error of every class's probability, not of the largest alone; averaged over the classes."""
    probs = p.probs.double().movedim(1, -1).flatten(0, -2)
    rows, classes = probs.shape
    truth = torch.zeros_like(probs).scatter(1, targets.long().view_as(p.labels).reshape(-1, 1), 1)
    index = (probs * bins).ceil().long().sub(1).clamp(0, bins - 1) + bins * torch.arange(classes, device=probs.device)
    gaps = torch.zeros(bins * classes, dtype=torch.double, device=probs.device)
    gaps.index_add_(0, index.flatten(), (truth - probs).flatten())
    return gaps.abs().sum().item() / (rows * classes)


def tempered(p: Predictive, temperature: float) -> Predictive:
    """The averaged prediction, its log-probabilities divided by a temperature; one member, as they are averaged first."""
    return Predictive((p.log_probs / temperature).unsqueeze(0))


def temperature(p: Predictive, targets: Tensor) -> float:
    """The temperature with the lowest NLL on these rows, which must be validation rows: a step of its own, reported apart.

    The NLL of `tempered` is convex in 1/T; found by golden-section search of log T between 1/20 and 20. A target of probability
    zero keeps it at every temperature, and has no say. Where none is better than 1 (all answers are certain, say), 1 it is.
    """
    log_probs, ratio = p.log_probs.double(), (5**0.5 - 1) / 2
    truth = targets.long().view_as(p.labels).unsqueeze(1)
    possible = log_probs.gather(1, truth) > -torch.inf

    def loss(log_t: float) -> float:
        scaled = (log_probs / math.exp(log_t)).log_softmax(1)
        return -scaled.gather(1, truth)[possible].mean().item()

    low, high = -3.0, 3.0
    while high - low > 1e-4:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    found = (low + high) / 2
    return math.exp(found) if loss(found) < loss(0.0) else 1.0
