"""One loop on Lightning; optimisers, schedules, checkpoints. It knows no method.

`fit` is in `training.fit`, and in `pluribus.fit`: reading the settings alone does not bring Lightning along.
"""

from .settings import Settings

__all__ = ["Settings"]
