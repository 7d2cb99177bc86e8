"""pluribus makes one neural network answer like many.

>>> import torch, pluribus
>>> net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
>>> ensemble = pluribus.ensemble(net, pluribus.MCDropout(rate=0.2, samples=50))
>>> p = ensemble.predict(torch.randn(8, 4))
>>> p.probs.shape, p.entropy.shape, p.members.shape
(torch.Size([8, 3]), torch.Size([8]), torch.Size([50, 8, 3]))
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import metrics
from .core.anytime import AnytimePredictive
from .core.convert import ensemble
from .core.describe import Description
from .core.ensemble import Ensemble
from .core.errors import ConversionError, FileError, PluribusError, Unsupported
from .core.member_targets import MemberTargets
from .core.predictive import Predictive, PredictiveSummary
from .core.pytrees import Views
from .core.restoring import restore
from .core.saving import load, save
from .core.spec import Spec
from .core.target_noise import TargetNoise
from .core.target_quantiles import TargetQuantiles
from .methods import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    LowRank,
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


_LAZY = {
    "Comparison": ".comparison.result_objects",
    "Evaluation": ".comparison.result_objects",
    "calibrate": ".decisions.calibrated",
    "compare": ".comparison.api",
    "distil": ".training.distillation",
    "evaluate": ".comparison.api",
    "export": ".exporting.api",
    "fit": ".training.fit",
}
"""Names that need more than torch and numpy, and the modules that they are imported from when they are first used."""
_ROOMS = ("analysis", "data", "decisions", "models", "search", "sklearn")


def __getattr__(name: str) -> Any:
    """Import what `import pluribus` does without: Lightning, pydantic, rich and so on."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'pluribus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from . import analysis, data, decisions, models, search, sklearn
    from .comparison.api import compare, evaluate
    from .comparison.result_objects import Comparison, Evaluation
    from .decisions.calibrated import calibrate
    from .exporting.api import export
    from .training.distillation import distil
    from .training.fit import fit

__all__ = [
    "MIMO",
    "AnytimePredictive",
    "BatchEnsemble",
    "Comparison",
    "ConversionError",
    "DeepEnsemble",
    "Description",
    "Ensemble",
    "Evaluation",
    "FileError",
    "Inner",
    "LowRank",
    "MCDropout",
    "Maxout",
    "MemberTargets",
    "Mixture",
    "Multihead",
    "PluribusError",
    "Predictive",
    "PredictiveSummary",
    "Single",
    "Spec",
    "TargetNoise",
    "TargetQuantiles",
    "TreeNet",
    "Unsupported",
    "Variance",
    "VariationalDropout",
    "Views",
    "analysis",
    "calibrate",
    "compare",
    "data",
    "decisions",
    "distil",
    "ensemble",
    "evaluate",
    "export",
    "fit",
    "load",
    "metrics",
    "models",
    "restore",
    "save",
    "search",
    "sklearn",
]
