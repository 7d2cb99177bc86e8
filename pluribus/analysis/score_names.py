"""How scores are called and written in terminal tables: a score without an entry shows its key and a plain number."""

import math

from ..core.files import NOT_FINITE
from ..core.texts import format_amount

SCORE_NAMES = {
    "nll": "NLL",
    "calibrated_nll": "NLL, calibrated",
    "brier": "Brier",
    "ece": "ECE",
    "adaptive_ece": "ECE, adaptive bins",
    "classwise_ece": "ECE, classwise",
    "aurc": "AURC",
    "accuracy_at_80": "accuracy at 80 % coverage",
    "rmse": "RMSE",
    "pinball": "pinball loss",
    "crps": "CRPS",
    "coverage_50": "50 % intervals hold",
    "coverage_95": "95 % intervals hold",
    "width_95": "width of 95 % intervals",
    "cacc": "cAcc",
    "cnll": "cNLL",
    "cece": "cECE",
    "mce": "mCE",
    "normalised_disagreement": "disagreement by error",
    "pairwise_kl": "pairwise KL",
    "error_correlation": "correlation of errors",
}
SHARES = (
    *("accuracy", "ece", "adaptive_ece", "classwise_ece", "accuracy_at_80"),
    *("coverage_50", "coverage_95", "cacc", "cece", "disagreement"),
)
"""Scores from 0 to 1 that are written as percentages."""


AMOUNTS = ("rmse", "pinball", "crps", "width_95", "error", "bias", "variance")
"""Scores in the unit of a regression's target, or its square, which may be large."""


def format_score(name: str, value: float | None) -> str:
    """Return a score as a percentage or a number. None is what JSON has for a number that is not finite.

    >>> format_score("accuracy", 0.9876), format_score("nll", 0.05)
    ('98.76 %', '0.0500')
    >>> format_score("accuracy", float("nan"))
    'not finite'
    >>> format_score("rmse", 68211.4321)
    '68211'
    """
    if value is None or not math.isfinite(value):
        return NOT_FINITE
    if name in AMOUNTS and abs(value) >= 9999.5:
        return format_amount(value)
    return f"{100 * value:.2f} %" if name in SHARES else f"{value:.4f}"
