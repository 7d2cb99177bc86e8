"""How far an ensemble's mean is from the truth."""

from torch import Tensor

from ..core.predictive import Predictive


def rmse(p: Predictive, targets: Tensor) -> float:
    """The root of the mean squared error of the members' mean."""
    return (p.mean - targets.view_as(p.mean)).double().square().mean().sqrt().item()
