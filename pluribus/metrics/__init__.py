"""Pure functions (Predictive, targets) -> number."""

from .classification import accuracy, ece, nll
from .regression import rmse

__all__ = ["accuracy", "ece", "nll", "rmse"]
