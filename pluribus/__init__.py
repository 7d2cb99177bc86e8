"""pluribus makes one neural network answer like many.

>>> import torch, pluribus
>>> net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
>>> ensemble = pluribus.ensemble(net, pluribus.MCDropout(rate=0.2, samples=50))
>>> p = ensemble.predict(torch.randn(8, 4))
>>> p.probs.shape, p.entropy.shape, p.members.shape
(torch.Size([8, 3]), torch.Size([8]), torch.Size([50, 8, 3]))
"""

from typing import TYPE_CHECKING, Any

from . import metrics
from .core.convert import ensemble
from .core.describe import Description
from .core.ensemble import Ensemble
from .core.errors import ConversionError, FileError, PluribusError, Unsupported
from .core.nested import Views
from .core.predictive import Predictive
from .core.saving import load, save
from .core.spec import Spec
from .methods import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    Maxout,
    MCDropout,
    Mixture,
    Multihead,
    Single,
    TreeNet,
    Variance,
    VariationalDropout,
)

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`pluribus.fit` brings Lightning along, which `import pluribus` does without."""
    if name == "fit":
        from .training.fit import fit

        return fit
    raise AttributeError(f"module 'pluribus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from .training.fit import fit

__all__ = [
    "MIMO",
    "BatchEnsemble",
    "ConversionError",
    "DeepEnsemble",
    "Description",
    "Ensemble",
    "FileError",
    "Inner",
    "MCDropout",
    "Maxout",
    "Mixture",
    "Multihead",
    "PluribusError",
    "Predictive",
    "Single",
    "Spec",
    "TreeNet",
    "Unsupported",
    "Variance",
    "VariationalDropout",
    "Views",
    "ensemble",
    "fit",
    "load",
    "metrics",
    "save",
]
