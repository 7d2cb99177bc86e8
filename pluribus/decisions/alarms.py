"""An alarm for rows that are unlike the training data, with a chosen rate of false alarms.

A score is higher for rows that fit the training data less. At most a share `false_alarms` of new rows of the same kind as n
held-out rows exceeds their score of rank ⌈(n + 1)(1 − false_alarms)⌉ (see `conformal.py`). How many foreign rows exceed it
depends on the score; which one is best can be found only by foreign rows.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from ..metrics.ood_detection import auroc

AlarmScore = Literal["confidence", "entropy", "mutual-information", "energy", "distance"]
ALARM_SCORES: tuple[AlarmScore, ...] = get_args(AlarmScore)
DEFAULT_SCORE: AlarmScore = "entropy"


def list_alarm_scores(p: Predictive | PredictiveSummary, has_distance: bool = False) -> tuple[AlarmScore, ...]:
    """The scores that a prediction has: mutual information needs two members, energy their logits, a distance its features."""
    members = len(p.outputs) if isinstance(p, Predictive) else p.count
    left_out = {"mutual-information"} if members == 1 else set()
    left_out |= set() if has_distance else {"distance"}
    if not isinstance(p, Predictive) or p.outputs.dim() < 3 or p.arrange_classes().outputs.shape[2] == 1:
        left_out |= {"energy"}
    return tuple(score for score in ALARM_SCORES if score not in left_out)


def score_strangeness(p: Predictive | PredictiveSummary, by: AlarmScore, distance: Tensor | None = None) -> Tensor:
    """How unlike the training data each row is, `[B]` in double precision.

    `distance` `[B]` is that of `feature_distance.py`.

    "confidence" is minus the probability of the most probable class; "entropy" that of the averaged probabilities;
    "mutual-information" what the members disagree about; "energy" is −log Σ exp(logits), averaged over the members (Liu et al.,
    "Energy-based Out-of-distribution Detection", 2020).

    >>> import torch
    >>> score_strangeness(Predictive(torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]])), "energy")
    tensor([-2.1269], dtype=torch.float64)
    """
    if by == "confidence":
        found = -p.confidence
    elif by == "entropy":
        found = p.entropy
    elif by == "mutual-information":
        found = p.mutual_information
    elif by == "energy" and isinstance(p, Predictive):
        found = -p.arrange_classes().outputs.double().logsumexp(2).mean(0)
    elif by == "distance" and distance is not None:
        found = distance
    elif by == "distance":
        raise ValueError("the alarm is by the distance of features: pass the distance of each row")
    elif by == "energy":
        raise ValueError("energy needs the members' logits: predict with members=True")
    else:
        raise ValueError(f"an alarm must be by one of {', '.join(ALARM_SCORES)}, got {by!r}")
    return found.double()


def choose_alarm_score(own: Mapping[AlarmScore, Tensor], foreign: Mapping[AlarmScore, Tensor]) -> AlarmScore:
    """The score with the highest AUROC of foreign rows against held-out rows; of equal ones the first.

    >>> import torch
    >>> same, higher = torch.arange(4.0), torch.arange(4.0) + 9
    >>> choose_alarm_score({"entropy": same, "energy": same}, {"entropy": same, "energy": higher})
    'energy'
    """
    return max(own, key=lambda score: auroc(own[score], foreign[score]))
