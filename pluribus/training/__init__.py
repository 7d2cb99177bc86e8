"""One training loop on Lightning: optimisers, schedules, checkpoints. It knows no method.

`fit` is in `training.fit`, and in `pluribus.fit`: importing the settings alone does not import Lightning.
"""

from .settings import Settings

__all__ = ["Settings"]
