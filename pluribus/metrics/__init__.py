"""Scores: pure functions (Predictive, targets) → number, confidence intervals, and sums over batches."""

from .calibration import (
    ConfidenceBins,
    adaptive_ece,
    apply_temperature,
    bin_by_confidence,
    brier,
    classwise_ece,
    ece,
    fit_temperature,
)
from .classification import accuracy, nll
from .intervals import Interval, bootstrap, central_interval, quantile
from .mixture import mixture_crps, mixture_nll
from .noise import calibrated_gaussian_nll
from .ood_detection import auroc, fpr95, uncertainty
from .pinball import pinball
from .regression import coverage, crps, fit_noise_variance, gaussian_nll, interval_calibration, rmse, width
from .selective import accuracy_at_coverage, aurc, risk_coverage
from .streaming import Tally
from .temperature import calibrated_nll, cross_fit_nll, nll_at_temperatures

__all__ = [
    "ConfidenceBins",
    "Interval",
    "Tally",
    "accuracy",
    "accuracy_at_coverage",
    "adaptive_ece",
    "apply_temperature",
    "aurc",
    "auroc",
    "bin_by_confidence",
    "bootstrap",
    "brier",
    "calibrated_gaussian_nll",
    "calibrated_nll",
    "central_interval",
    "classwise_ece",
    "coverage",
    "cross_fit_nll",
    "crps",
    "ece",
    "fit_noise_variance",
    "fit_temperature",
    "fpr95",
    "gaussian_nll",
    "interval_calibration",
    "mixture_crps",
    "mixture_nll",
    "nll",
    "nll_at_temperatures",
    "pinball",
    "quantile",
    "risk_coverage",
    "rmse",
    "uncertainty",
    "width",
]
