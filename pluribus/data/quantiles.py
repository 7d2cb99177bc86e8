"""Quantile normalisation: a column of numbers becomes standard normal, as far as equal numbers allow it.

    z(x) = Φ⁻¹( share of training rows below x  +  half the share of rows equal to x )

Between the training values z is interpolated; beyond them it is that of the nearest one. So a far-off number cannot upset a
network, and a skewed column gives it as much to see as a symmetric one. Equal numbers get the score of the middle of their
rows: a column that holds 0 and 1 equally often becomes ±0.67.
"""

from typing import NamedTuple

import numpy as np

KNOTS = 256
"""The most training values of a column that are kept; scores between them are interpolated."""


class Quantiles(NamedTuple):
    """Training values of a column, rising, and the normal score of each. Both are empty for a column of categories."""

    values: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()

    def normalize(self, values: np.ndarray) -> np.ndarray:
        """The scores of numbers `[N]`.

        >>> Quantiles((0.0, 10.0), (-1.0, 1.0)).normalize(np.array([5.0, 7.5, 99.0])).tolist()
        [0.0, 0.5, 1.0]
        """
        return np.interp(values, self.values, self.scores)


def fit_quantiles(values: np.ndarray, weights: np.ndarray | None = None) -> Quantiles:
    """Fit the quantiles of finite training values `[N]`; `weights` `[N]`, all positive, say how often each counts.

    >>> fitted = fit_quantiles(np.array([1.0, 2.0, 2.0, 3.0]))
    >>> fitted.values, [round(score, 4) for score in fitted.scores]  # Φ⁻¹ of 1/8, 1/2 and 7/8
    ((1.0, 2.0, 3.0), [-1.1503, 0.0, 1.1503])
    """
    from scipy.special import ndtri  # comes with scikit-learn

    known, place = np.unique(values, return_inverse=True)
    counts = np.bincount(place, weights)
    shares = (np.cumsum(counts) - counts / 2) / counts.sum()
    if len(known) > KNOTS:
        chosen = np.unique(np.searchsorted(shares, np.linspace(shares[0], shares[-1], KNOTS)).clip(max=len(known) - 1))
        known, shares = known[chosen], shares[chosen]
    return Quantiles(tuple(known.tolist()), tuple(ndtri(shares).tolist()))
