"""One loop on Lightning; optimisers, schedules, checkpoints. It knows no method."""

from .fit import fit
from .settings import Settings

__all__ = ["Settings", "fit"]
