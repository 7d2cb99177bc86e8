"""Whether probabilities mean what they say: binned errors, and one temperature that mends most of it.

    classwise:   for every class, |share of the class − mean probability of it| by bins of that probability; the classes' mean
    adaptive:    the same with bins of equally many rows

Nixon et al., "Measuring Calibration in Deep Learning", 2019; Kumar et al., 2019; Guo et al., 2017 (temperature).
"""

import torch
from torch import Tensor

from ..core.predictive import Predictive


def brier(p: Predictive, targets: Tensor) -> float:
    """The squared distance of the probabilities from the truth, summed over classes, averaged over rows: from 0 to 2."""
    return squares(p, targets).double().mean().item()


def squares(p: Predictive, targets: Tensor) -> Tensor:
    """The Brier score of every row, `[B]`: Σ_c p_c² − 2 p_target + 1."""
    probs = p.probs
    return probs.square().sum(1) - 2 * probs.gather(1, targets.long().unsqueeze(1)).squeeze(1) + 1


def adaptive_ece(p: Predictive, targets: Tensor, bins: int = 15) -> float:
    """ECE with bins of equally many rows (as nearly as they divide), in the order of confidence."""
    confidence, order = p.confidence.flatten().double().sort()
    right = (p.labels == targets.view_as(p.labels)).flatten().double()[order]
    index = torch.arange(len(order), device=order.device) * bins // max(len(order), 1)
    gaps = torch.zeros(bins, dtype=torch.double, device=order.device).index_add(0, index, right - confidence)
    return gaps.abs().sum().item() / max(len(order), 1)


def classwise_ece(p: Predictive, targets: Tensor, bins: int = 15) -> float:
    """The calibration error of every class's probability, not of the largest alone; averaged over the classes."""
    probs = p.probs.double()
    rows, classes = probs.shape
    truth = torch.zeros_like(probs).scatter(1, targets.long().unsqueeze(1), 1)
    index = (probs * bins).ceil().long().sub(1).clamp(0, bins - 1) + bins * torch.arange(classes, device=probs.device)
    gaps = torch.zeros(bins * classes, dtype=torch.double, device=probs.device)
    gaps.index_add_(0, index.flatten(), (truth - probs).flatten())
    return gaps.abs().sum().item() / (rows * classes)


def tempered(p: Predictive, temperature: float) -> Predictive:
    """The averaged prediction, its log-probabilities divided by a temperature; one member, as they are averaged first."""
    return Predictive((p.log_probs / temperature).unsqueeze(0))


def temperature(p: Predictive, targets: Tensor) -> float:
    """The temperature with the lowest NLL on these rows, which must be validation rows: a step of its own, reported apart.

    The NLL of `tempered` is convex in 1/T; found by golden-section search of log T between 1/20 and 20.
    """
    log_probs, ratio = p.log_probs.double(), (5**0.5 - 1) / 2
    truth = targets.long().unsqueeze(1)

    def loss(log_t: float) -> float:
        scaled = (log_probs / torch.tensor(log_t).double().exp()).log_softmax(1)
        return -scaled.gather(1, truth).mean().item()

    low, high = -3.0, 3.0
    while high - low > 1e-4:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return float(torch.tensor((low + high) / 2).double().exp())
