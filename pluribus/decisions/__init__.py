"""Decisions from predictions: sets of classes, intervals, when not to answer, when to raise an alarm, each with a guarantee."""

from .abstention import find_safe_confidence
from .calibrated import CalibratedEnsemble, calibrate
from .classification import ClassificationRules, Decisions, fit_classification_rules
from .conformal import build_sets, find_threshold, score_classes, score_truth
from .intervals import Intervals, RegressionRules, fit_regression_rules

__all__ = [
    "CalibratedEnsemble",
    "ClassificationRules",
    "Decisions",
    "Intervals",
    "RegressionRules",
    "build_sets",
    "calibrate",
    "find_safe_confidence",
    "find_threshold",
    "fit_classification_rules",
    "fit_regression_rules",
    "score_classes",
    "score_truth",
]
