"""Calibration: whether predicted probabilities match observed frequencies, and temperature scaling, which corrects most of it.

    ECE       = Σ_b (n_b / n) · |accuracy_b − confidence_b|,     bin b = (b/bins, (b+1)/bins]
    classwise = for every class, the same of that class's probability and frequency; averaged over the classes
    adaptive  = the same as ECE, with bins that hold equally many rows

Guo et al., "On Calibration of Modern Neural Networks", 2017, eq. 3 (ECE, temperature scaling); Nixon et al., "Measuring
Calibration in Deep Learning", 2019; Kumar et al., "Verified Uncertainty Calibration", 2019.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from .classification import find_correct
from .selective import average_ties
from .temperature import PRIOR_WIDTH

# --- binning ----------------------------------------------------------------------------------------------------------


def assign_bins(values: Tensor, bins: int = 15) -> Tensor:
    """Find the bin of every value from 0 to 1: bin b is (b/bins, (b+1)/bins], and 0 is in the first one.

    Args: `values` of any shape. Returns: bin numbers from 0 to bins − 1, in the shape of `values`; NaN is in the first one.

    >>> assign_bins(torch.tensor([0.0, 0.5, 0.51, 1.0]), bins=2)
    tensor([0, 0, 1, 1])
    """
    return (values.double() * bins).nan_to_num().ceil().long().sub(1).clamp(0, bins - 1)


class ConfidenceBins(NamedTuple):
    """Sums over the rows of every confidence bin, each `[bins]` in double precision. The sums of two sets of rows add up."""

    rows: Tensor
    """How many rows are in the bin."""
    correct: Tensor
    """How many of them are predicted correctly."""
    confidence: Tensor
    """The sum of their confidences."""

    @property
    def error(self) -> float:
        """The expected calibration error of these rows; 0 where there are none."""
        return (self.correct - self.confidence).abs().sum().item() / max(self.rows.sum().item(), 1)


def bin_by_confidence(confidence: Tensor, correct: Tensor, bins: int = 15) -> ConfidenceBins:
    """Sort rows into bins of equal width by confidence, and add up every bin.

    Args: `confidence` `[N]` from 0 to 1; `correct` `[N]`, true or 1 where the prediction is correct.
    Returns: the sums of every bin, `[bins]` each.

    >>> found = bin_by_confidence(torch.tensor([0.4, 0.9, 0.7]), torch.tensor([True, True, False]), bins=2)
    >>> found.rows.tolist(), found.correct.tolist(), round(found.error, 3)
    ([1.0, 2.0], [1.0, 1.0], 0.4)
    """
    confidence, correct = confidence.double(), correct.double()
    sums = torch.zeros(3, bins, dtype=torch.double, device=confidence.device)
    sums.index_add_(1, assign_bins(confidence, bins), torch.stack([torch.ones_like(confidence), correct, confidence]))
    return ConfidenceBins(*sums)


# --- calibration errors -----------------------------------------------------------------------------------------------


def ece(p: Predictive | PredictiveSummary, targets: Tensor, bins: int = 15) -> float:
    """Expected calibration error: the distance of confidence from accuracy in every bin, weighted by the rows in it.

    Args: a prediction of B rows; `targets` `[B]`. Returns: a number from 0 to 1, smaller is better.

    >>> p = Predictive(torch.tensor([[[0.8, 0.2], [0.8, 0.2]]]).log())  # 80 % sure, and right in one row of two
    >>> round(ece(p, torch.tensor([0, 1])), 3)
    0.3
    """
    return bin_by_confidence(p.confidence.flatten(), find_correct(p, targets).flatten(), bins).error


def adaptive_ece(p: Predictive | PredictiveSummary, targets: Tensor, bins: int = 15) -> float:
    """Calibration error by bins of equally many rows (as nearly as they divide), in the order of confidence.

    Args: a prediction of B rows; `targets` `[B]`. Returns: a number from 0 to 1, smaller is better.

    >>> p = Predictive(torch.tensor([[[0.9, 0.1], [0.6, 0.4]]], dtype=torch.double).log())
    >>> round(adaptive_ece(p, torch.tensor([0, 0]), bins=2), 3)  # (0.1 + 0.4) / 2
    0.25
    """
    return adaptive_calibration_error(p.confidence.flatten(), find_correct(p, targets).flatten(), bins)


def adaptive_calibration_error(confidence: Tensor, correct: Tensor, bins: int = 15) -> float:
    """`adaptive_ece` of confidences `[N]` and correct predictions `[N]`.

    Rows of equal confidence have no order: each counts with the mean accuracy of all of them.
    """
    correct = average_ties(correct, confidence)
    confidence, order = confidence.double().sort()
    correct = correct[order]
    index = torch.arange(len(order), device=order.device) * bins // max(len(order), 1)
    gaps = torch.zeros(bins, dtype=torch.double, device=order.device).index_add(0, index, correct - confidence)
    return gaps.abs().sum().item() / max(len(order), 1)


def classwise_ece(p: Predictive | PredictiveSummary, targets: Tensor, bins: int = 15) -> float:
    """Calibration error of every class's probability, not only of the highest one; averaged over the classes.

    Args: a prediction of B rows; `targets` `[B]`. Returns: a number from 0 to 1, smaller is better.

    >>> p = Predictive(torch.tensor([[[0.9, 0.1], [0.3, 0.7]]], dtype=torch.double).log())
    >>> round(classwise_ece(p, torch.tensor([0, 0]), bins=2), 3)  # (0.1 + 0.7 + 0.1 + 0.7) / 4
    0.4
    """
    probs = p.arrange_classes().probs.movedim(1, -1).flatten(0, -2)
    gaps = sum_classwise_gaps(probs, targets.long().view_as(p.labels).flatten(), bins)
    return gaps.abs().sum().item() / probs.numel()


def sum_classwise_gaps(probs: Tensor, targets: Tensor, bins: int = 15) -> Tensor:
    """Sum (is this class − its probability) over the rows of every bin of every class's probability.

    Args: `probs` `[N, C]`; `targets` `[N]`. Returns: `[C · bins]` in double; the sums of two sets of rows add up.
    """
    probs = probs.double()
    hits = torch.zeros_like(probs).scatter(1, targets.long().view(-1, 1), 1)
    index = assign_bins(probs, bins) + bins * torch.arange(probs.shape[1], device=probs.device)
    gaps = torch.zeros(bins * probs.shape[1], dtype=torch.double, device=probs.device)
    return gaps.index_add_(0, index.flatten(), (hits - probs).flatten())


# --- Brier score ------------------------------------------------------------------------------------------------------


def brier(p: Predictive | PredictiveSummary, targets: Tensor) -> float:
    """The squared distance of the probabilities from the truth, summed over classes and averaged over rows.

    Args: a prediction of B rows; `targets` `[B]`. Returns: a number from 0 to 2, smaller is better.

    >>> round(brier(Predictive(torch.tensor([[[0.8, 0.2]]]).log()), torch.tensor([0])), 3)  # 0.2² + 0.2²
    0.08
    """
    return brier_terms(p, targets).double().mean().item()


def brier_terms(p: Predictive | PredictiveSummary, targets: Tensor) -> Tensor:
    """The Brier score of every row, `[B]`: Σ_c p_c² − 2 p_target + 1."""
    probs = p.arrange_classes().probs
    truth = targets.long().view_as(p.labels).unsqueeze(1)
    return probs.square().sum(1) - 2 * probs.gather(1, truth).squeeze(1) + 1


# --- temperature scaling ----------------------------------------------------------------------------------------------


def apply_temperature(p: Predictive | PredictiveSummary, temperature: float) -> Predictive:
    """Divide the log-probabilities of the averaged prediction by a temperature.

    Args: a prediction `[M, B, C]`. Returns: one of a single member, `[1, B, C]`, as the members are averaged first.

    >>> hot = apply_temperature(Predictive(torch.tensor([[[4.0, 0.0]]])), 2.0)
    >>> hot.probs.allclose(torch.tensor([[2.0, 0.0]]).softmax(1))
    True
    """
    return Predictive((p.log_probs / temperature).unsqueeze(0), class_axis=p.class_axis)


def fit_temperature(p: Predictive | PredictiveSummary, targets: Tensor, width: float = PRIOR_WIDTH) -> float:
    """Find the most probable temperature given these rows, which must be validation rows.

        minimise over log T from −3 to 3:   Σ_rows NLL_T(row) + (log T)² / (2 width²)

    The second term is a normal prior on log T. Rows with zero target probability are ignored, as no temperature changes it; if
    none is left, or no temperature is better than 1, the temperature is 1.

    Args: a prediction of B rows; `targets` `[B]`; the prior's standard deviation, `math.inf` for none.
    Returns: the temperature, from 1/20 to 20. Raises: ValueError if the width is not positive.

    >>> p = Predictive(torch.tensor([[[6.0, 0.0]] * 4]))  # 99.8 % sure, and right in three rows of four
    >>> round(fit_temperature(p, torch.tensor([0, 0, 0, 1]), width=math.inf), 2)  # 6 / log 3
    5.46
    >>> round(fit_temperature(p, torch.tensor([0, 0, 0, 1])), 2)  # four rows say little against the prior
    1.92
    """
    if not width > 0:
        raise ValueError(f"width must be positive, got {width}: math.inf is no prior")
    log_probs, ratio = p.arrange_classes().log_probs.double(), (5**0.5 - 1) / 2
    truth = targets.long().view_as(p.labels).unsqueeze(1)
    possible = log_probs.gather(1, truth) > -torch.inf
    rows = max(int(possible.sum().item()), 1)

    def loss(log_t: float) -> float:
        scaled = (log_probs / math.exp(log_t)).log_softmax(1)
        return -scaled.gather(1, truth)[possible].mean().item() + (log_t / width) ** 2 / (2 * rows)

    # With the prior there may be two valleys: the coarse search finds the deeper one.
    coarse = [-3 + 0.25 * step for step in range(25)]
    middle = min(coarse, key=loss)
    low, high = max(middle - 0.25, -3.0), min(middle + 0.25, 3.0)
    while high - low > 1e-4:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    found = (low + high) / 2
    return math.exp(found) if loss(found) < loss(0.0) else 1.0
