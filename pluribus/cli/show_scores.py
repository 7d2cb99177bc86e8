"""How scores are named and written on the terminal."""

from rich.table import Table

SCORE_NAMES = {
    "nll": "NLL",
    "brier": "Brier",
    "ece": "ECE",
    "adaptive_ece": "ECE, adaptive bins",
    "classwise_ece": "ECE, classwise",
    "aurc": "AURC",
    "accuracy_at_80": "accuracy at 80 % coverage",
    "rmse": "RMSE",
    "crps": "CRPS",
    "coverage_50": "50 % intervals hold",
    "coverage_95": "95 % intervals hold",
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


def format_score(name: str, value: float) -> str:
    """Return a score as a percentage or a number.

    >>> format_score("accuracy", 0.9876), format_score("nll", 0.05)
    ('98.76 %', '0.0500')
    """
    return f"{100 * value:.2f} %" if name in SHARES else f"{value:.4f}"


def make_score_table(values: dict[str, float]) -> Table:
    table = Table(show_header=False)
    for name, value in values.items():
        table.add_row(SCORE_NAMES.get(name, name), format_score(name, value))
    return table
