"""Split conformal prediction: sets of classes and intervals that hold the truth with a chosen probability.

A score says how badly a target fits a prediction. Of n held-out rows, which the network was not trained on, the scores are
sorted, and the threshold is the one of rank

    k = ⌈(n + 1) · coverage⌉

If a new row and the held-out rows are exchangeable, its score is at most the threshold with a probability from `coverage` to
coverage + 1/(n + 1), whatever the network is (the upper end without ties). The set holds every target whose score is at most
the threshold. With fewer rows than k the threshold is infinite, and the set holds everything.

The probability is over rows and held-out rows together: it is not that of a single class or a single row, and it is lost where
new rows differ from the held-out ones.

Vovk, Gammerman & Shafer, "Algorithmic Learning in a Random World", 2005. Scores of classes: LAC (Sadinle, Lei & Wasserman,
"Least Ambiguous Set-Valued Classifiers with Bounded Error Levels", 2019), APS (Romano, Sesia & Candès, "Classification with
Valid and Adaptive Coverage", 2020), RAPS (Angelopoulos et al., "Uncertainty Sets for Image Classifiers using Conformal
Prediction", 2021).
"""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

SetScore = Literal["lac", "aps", "raps"]
SET_SCORES: tuple[str, ...] = get_args(SetScore)
RAPS_WEIGHT, RAPS_FREE = 0.1, 2
"""RAPS adds this much to the score of a class for each place that it comes after the second."""


def find_threshold(scores: Tensor, coverage: float) -> float:
    """The threshold that the score of a new row exceeds with a probability of at most 1 − `coverage`.

    Args: the scores of held-out rows, `[N]`; `coverage` between 0 and 1. Returns: ∞ if the rows are too few for it. Raises:
    ValueError if the coverage is not between 0 and 1, or if a score is NaN.

    >>> find_threshold(torch.arange(1.0, 10.0), 0.8), find_threshold(torch.arange(1.0, 10.0), 0.95)
    (8.0, inf)
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
    if scores.isnan().any():
        raise ValueError("a score is NaN: the network has no finite answer to some held-out rows")
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)  # 0.9 · 10 must not become 10 by a rounding error
    return scores.double().sort().values[rank - 1].item() if rank <= len(scores) else math.inf


def count_needed_rows(coverage: float) -> int:
    """How many held-out rows a finite threshold needs.

    >>> count_needed_rows(0.9), count_needed_rows(0.95)
    (9, 19)
    """
    return math.ceil(coverage / (1 - coverage) - 1e-9)


def score_classes(probs: Tensor, by: SetScore = "raps") -> Tensor:
    """How badly each class fits: probabilities `[B, C]` → `[B, C]`.

    "lac" is 1 − p, which gives the smallest sets on average. "aps" is the probability of all classes that are more probable,
    which gives larger sets to harder rows, and never an empty one. "raps" is that plus a penalty from the third class on, so
    that the sets of hard rows do not become very large. The papers add a random share of the class's own probability, so that
    the coverage is not exceeded; here no random numbers are drawn, and equal rows get equal sets.

    >>> score_classes(torch.tensor([[0.6, 0.3, 0.1]]), "aps")
    tensor([[0.0000, 0.6000, 0.9000]], dtype=torch.float64)
    """
    if by not in SET_SCORES:
        raise ValueError(f"sets must be by {', '.join(SET_SCORES[:-1])} or {SET_SCORES[-1]}, got {by!r}")
    probs = probs.double()
    if by == "lac":
        return 1 - probs
    # ONNX has one way to sort, which keeps the order of equal numbers.
    order = {} if torch.compiler.is_compiling() else {"stable": True}
    ordered, classes = probs.sort(dim=1, descending=True, **order)
    found = (ordered.cumsum(1) - ordered).clamp_min(0)
    if by == "raps":
        places = torch.arange(1, probs.shape[1] + 1, dtype=torch.double, device=probs.device)
        found = found + RAPS_WEIGHT * (places - RAPS_FREE).clamp_min(0)
    return torch.empty_like(found).scatter_(1, classes, found)


def score_truth(probs: Tensor, targets: Tensor, by: SetScore = "raps") -> Tensor:
    """How badly the true class fits: probabilities `[B, C]`, targets `[B]` → `[B]`.

    >>> score_truth(torch.tensor([[0.6, 0.3, 0.1]]), torch.tensor([1]), "lac")
    tensor([0.7000], dtype=torch.float64)
    """
    return score_classes(probs, by).gather(1, targets.long().view(-1, 1)).squeeze(1)


def build_sets(probs: Tensor, threshold: float, by: SetScore = "raps", allow_empty: bool = False) -> Tensor:
    """Which classes are in the set of each row, `[B, C]`.

    A set that would be empty holds the most probable class, so sets cover at least what was asked for. `allow_empty` leaves it
    empty: then they cover exactly that, and an empty set says that no class fits as it does elsewhere.

    >>> build_sets(torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25]]), 0.7, "lac")
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    chosen = score_classes(probs, by) <= threshold
    if not allow_empty:
        chosen.scatter_(1, probs.argmax(1, keepdim=True), True)
    return chosen & ~probs.isnan().any(1, keepdim=True)
