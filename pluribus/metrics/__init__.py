"""Pure functions (Predictive, targets) -> number."""

from .calibration import adaptive_ece, brier, classwise_ece, temperature, tempered
from .classification import accuracy, ece, nll
from .detection import auroc, fpr95, uncertainty
from .intervals import Interval, bootstrap
from .regression import coverage, crps, gaussian_nll, rmse
from .selective import accuracy_at_coverage, aurc, risk_coverage

__all__ = [
    "Interval",
    "accuracy",
    "accuracy_at_coverage",
    "adaptive_ece",
    "aurc",
    "auroc",
    "bootstrap",
    "brier",
    "classwise_ece",
    "coverage",
    "crps",
    "ece",
    "fpr95",
    "gaussian_nll",
    "nll",
    "risk_coverage",
    "rmse",
    "temperature",
    "tempered",
    "uncertainty",
]
