"""A confidence below which not to answer, so that at most a chosen share of the answers is wrong.

The held-out rows are sorted by confidence. For twenty shares of them, 5 % to 100 %, the threshold is the confidence of the last
row of that share, and the k rows above it are tested: if more than a share `risk` of all answers above this threshold were
wrong, at most `wrong` errors among k rows would have the probability

    P(Bin(k, risk) ≤ wrong)

If this is at most δ, the threshold is safe, and the next one is tested, which answers more rows; the first that is not safe
ends the search. As their order is fixed before any answer is looked at, an unsafe threshold is taken with the probability δ at
most, over the held-out rows: the first of them would have to pass. Shares of so few rows that they could not pass are left out.
The thresholds are confidences of the same rows, which this argument neglects: in 3,000 simulated draws of 100 to 1,000 rows the
risk was exceeded in 2 to 8 % of them for δ = 10 %.

For 500 rows of a calibrated classifier that is 90 % right, and a risk of 5 %, this answers 70 % of the rows; with a test of
each threshold at δ / 20 it would be 68 %, and 52 % against 21 % for 200 rows.

Geifman & El-Yaniv, "Selective Classification for Deep Neural Networks", 2017; Angelopoulos et al., "Learn then Test", 2021.
"""

import math

import torch
from torch import Tensor

SHARES = 20
DELTA = 0.1
"""The probability that the risk is not kept, over the choice of held-out rows."""


def find_safe_confidence(confidence: Tensor, right: Tensor, risk: float, delta: float = DELTA) -> float:
    """The lowest confidence at which to answer, so that the share of wrong answers is at most `risk`.

    Args: the confidences of held-out rows, `[N]`; whether their answers are right, `[N]`; `risk` and `delta` between 0 and 1.
    Returns: the threshold above which to answer; 0 if all rows may be answered, ∞ if no threshold is safe.

    >>> confidence = torch.linspace(0, 1, 1001)
    >>> find_safe_confidence(confidence, confidence > 0.2, risk=0.01)  # the 800 rows above 0.2 are right, the others wrong
    0.20000000298023224
    """
    for name, value in (("risk", risk), ("delta", delta)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be between 0 and 1, got {value}")
    if not len(confidence):
        return math.inf
    order = confidence.argsort(descending=True)
    confidence, wrong = confidence[order].double(), (~right.bool())[order].double().cumsum(0)
    safe, need = math.inf, count_needed_answers(risk, delta)
    for share in range(1, SHARES + 1):
        threshold = confidence[math.ceil(len(confidence) * share / SHARES) - 1].item() if share < SHARES else 0.0
        above = int((confidence > threshold).sum())  # ties are left out
        if above < need:
            continue
        if compute_binomial_cdf(int(wrong[above - 1]), above, risk) > delta:
            break
        safe = threshold
    return safe


def count_needed_answers(risk: float, delta: float = DELTA) -> int:
    """How many held-out answers, all of them right, it takes to show that the risk is small enough.

    >>> count_needed_answers(0.01)
    230
    """
    return math.ceil(math.log(delta) / math.log1p(-risk))


def compute_binomial_cdf(most: int, count: int, chance: float) -> float:
    """P(Bin(count, chance) ≤ most).

    >>> round(compute_binomial_cdf(1, 3, 0.5), 6)
    0.5
    """
    k = torch.arange(most + 1, dtype=torch.double)
    n = torch.tensor(float(count), dtype=torch.double)
    choices = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    return min((choices + k * math.log(chance) + (n - k) * math.log1p(-chance)).exp().sum().item(), 1.0)
