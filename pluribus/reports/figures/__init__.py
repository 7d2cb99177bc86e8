"""The figures of the page. Each is a function of the results that returns None if there is nothing to show."""

from typing import Any

from .calibration import make_reliability_figure, make_temperature_figure, read_reliability_bins
from .cost import make_cost_figure, make_lead_figure
from .curves import make_attack_figure, make_risk_figure, make_shift_figure
from .detection import make_detection_figure
from .diversity import make_diversity_figure
from .learning import make_learning_figure
from .regression import make_interval_figure, make_residual_figure
from .traces import Figure

FIGURES = (
    make_lead_figure,
    make_cost_figure,
    make_reliability_figure,
    make_interval_figure,
    make_residual_figure,
    make_shift_figure,
    make_risk_figure,
    make_diversity_figure,
    make_detection_figure,
    make_attack_figure,
    make_temperature_figure,
    make_learning_figure,
)


def make_figures(results: dict[str, Any]) -> list[Figure]:
    """Return all figures that the results have data for, in the order of the page."""
    return [figure for make in FIGURES if (figure := make(results)) is not None]


__all__ = ["Figure", "make_attack_figure", "make_figures", "make_risk_figure", "make_shift_figure", "read_reliability_bins"]
