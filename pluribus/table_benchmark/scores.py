"""What is scored of a contender: a Gaussian for every row, as a mean and a variance."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.predictive import Predictive
from ..metrics.regression import coverage, crps, fit_noise_variance, gaussian_nll, rmse

COVERAGE = 0.9


@dataclass(frozen=True, eq=False)
class Gaussians:
    """The prediction for N rows: means `[N]` and variances `[N]`, zero where a contender says nothing about its errors."""

    mean: Tensor
    variance: Tensor

    def to_predictive(self) -> Predictive:
        """Two members, a standard deviation below and above the mean: they have this mean and this variance."""
        mean, std = self.mean.double(), self.variance.double().clamp_min(0).sqrt()
        return Predictive(torch.stack([mean - std, mean + std]).unsqueeze(2), "regression")


def score_gaussians(validation: Gaussians, y_validation: Tensor, test: Gaussians, y_test: Tensor) -> dict[str, float]:
    """RMSE, NLL, CRPS and the coverage of intervals of 90 % on the test rows.

    The noise that the predicted variances leave out is estimated from the validation rows, for every contender alike.

    >>> one = Gaussians(torch.zeros(2), torch.zeros(2))
    >>> found = score_gaussians(one, torch.tensor([1.0, -1.0]), one, torch.tensor([2.0, 0.0]))
    >>> round(found["rmse"], 4), found["coverage"]  # the noise has the variance 1, and the interval is ±1.64
    (1.4142, 0.5)
    """
    noise = fit_noise_variance(validation.to_predictive(), y_validation)
    p = test.to_predictive()
    return {
        "rmse": rmse(p, y_test),
        "nll": gaussian_nll(p, y_test, noise),
        "crps": crps(p, y_test, noise),
        "coverage": coverage(p, y_test, COVERAGE, noise),
    }
