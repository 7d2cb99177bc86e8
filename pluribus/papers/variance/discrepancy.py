"""How far a Gaussian-dropout posterior is from its zero-mean approximation, and what that does to predictions.

    q = Π_i N(μ_i, α μ_i²),   q⁰ = Π_i N(0, α μ_i²),   D weights

    MMD(q⁰, q) = sup_{|f| ≤ 1} |E_q⁰ f − E_q f|  =  2 (2 Φ(½ √(D/α)) − 1)  ≤  √(2/π) · √(D/α)                 (theorem 1)

The supremum is twice the total variation of two normal distributions that are √(D/α) standard deviations apart, so it is known
exactly and no bound is needed. It is never more than 2: a bound of 2 or more is vacuous.

A probability p(t | x, w) lies in [0, 1], so f = 2 p − 1 is allowed, and averages of p over q and q⁰ differ by at most half of
the supremum, for every x and t (eq. 38).

Neklyudov et al., "Variance Networks", ICLR 2019, theorem 1, appendix A.
"""

import math

VACUOUS = 2.0
"""The largest possible discrepancy of two distributions."""


def distance(log_alpha: float, weights: int) -> float:
    """√(D/α): the number of standard deviations between the two distributions.

    >>> distance(0.0, 4)
    2.0
    """
    return math.sqrt(weights) * math.exp(-0.5 * log_alpha)


def mmd(log_alpha: float, weights: int) -> float:
    """The exact supremum.

    >>> round(mmd(15.0, 512 * 512 * 9), 4)
    0.658
    """
    # erf(z / √2) = 2 Φ(z) − 1, but keeps the digits of a small result.
    return 2 * math.erf(0.5 * distance(log_alpha, weights) / math.sqrt(2))


def mmd_bound(log_alpha: float, weights: int) -> float:
    """The paper's bound on the supremum; from 2 on it is vacuous.

    >>> round(mmd_bound(15.0, 512 * 512 * 9), 4), mmd_bound(6.9, 400_000) > VACUOUS
    (0.6778, True)
    """
    return math.sqrt(2 / math.pi) * distance(log_alpha, weights)


def prediction_bound(log_alpha: float, weights: int) -> float:
    """The largest possible change of an averaged probability (eq. 38); some network attains it."""
    return mmd(log_alpha, weights) / 2
