"""Ensembles as estimators of scikit-learn: `EnsembleClassifier` and `EnsembleRegressor`."""

from .estimators import EnsembleClassifier, EnsembleRegressor

__all__ = ["EnsembleClassifier", "EnsembleRegressor"]
