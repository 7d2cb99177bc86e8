"""What anytime answers cost and are worth: accuracy and NLL against the share of members that are asked.

    k_t(x) = the least k whose mean probabilities p̄_k(· | x) reach the confidence t, and M if there is none
    a point of the curve: t,    E k_t / M,    P(argmax p̄_k(· | x) = y),    E −log p̄_k(y | x)        with k = k_t(x)

All thresholds are evaluated from the outputs of all members, which are computed once.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.predictive import Predictive
from ..core.spec import require_share

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0)


class AnytimePoint(NamedTuple):
    """The scores of `ensemble.predict(x, until=until)`."""

    until: float
    members: float
    """How many members a row uses on average."""
    passes: float
    """The same as a share of all members: from 1/M to 1."""
    accuracy: float
    nll: float


def trace_anytime(p: Predictive, targets: Tensor, thresholds: Sequence[float] = THRESHOLDS) -> list[AnytimePoint]:
    """Accuracy and NLL of anytime answers, and the share of members that they ask, at several thresholds.

    Args: predictions of all members `[M, B, C]`, asked in this order; `targets` `[B]`; the confidences at which rows stop. The
    last point of a curve with a threshold of 1 is nearly that of all members: only rows with a probability of 1 stop before.

    Raises ValueError if predictions and targets do not fit, or a threshold is not from 0 to 1.

    >>> sure, unsure, other = [4.0, 0.0], [0.5, 0.0], [0.0, 2.0]
    >>> p = Predictive(torch.tensor([[sure, unsure], [other, other]]))
    >>> for point in trace_anytime(p, torch.tensor([0, 1]), [0.6, 0.9, 1.0]):
    ...     print(point.until, point.members, point.passes, point.accuracy)
    0.6 1.0 0.5 0.5
    0.9 1.5 0.75 1.0
    1.0 2.0 1.0 1.0
    """
    log_probs = p.arrange_classes().member_log_probs.double()  # [M, B, C]
    count, rows = log_probs.shape[:2]
    if log_probs.dim() != 3 or targets.shape != (rows,):
        raise ValueError(f"there must be one target for each of {rows} rows, got {list(targets.shape)}")
    sizes = torch.arange(1, count + 1, dtype=torch.double, device=log_probs.device)
    means = log_probs.logcumsumexp(0) - sizes.log().view(-1, 1, 1)
    confidence, labels = means.max(2)  # [M, B]
    nll = -means.gather(2, targets.long().view(1, -1, 1).expand(count, -1, 1)).squeeze(2)
    points = []
    for until in thresholds:
        require_share("until", until)
        sure = confidence.exp() >= until
        sure[-1] = True
        stop = sure.int().argmax(0, keepdim=True)  # of equal values, the first
        used = (stop + 1).double().mean().item()
        right = (labels.gather(0, stop)[0] == targets).double().mean().item()
        points.append(AnytimePoint(until, used, used / count, right, nll.gather(0, stop).mean().item()))
    return points
