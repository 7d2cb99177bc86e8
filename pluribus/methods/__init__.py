"""One file a technique: its idea and equation, its spec, its ensemble, its layers."""

from .batch_ensemble import BatchEnsemble
from .deep_ensemble import DeepEnsemble
from .inner import Inner
from .low_rank import LowRank
from .maxout import Maxout
from .mc_dropout import MCDropout
from .mimo import MIMO
from .mixture import Mixture
from .multihead import Multihead
from .single import Single
from .treenet import TreeNet
from .variance import Variance
from .variational import VariationalDropout

__all__ = [
    "MIMO",
    "BatchEnsemble",
    "DeepEnsemble",
    "Inner",
    "LowRank",
    "MCDropout",
    "Maxout",
    "Mixture",
    "Multihead",
    "Single",
    "TreeNet",
    "Variance",
    "VariationalDropout",
]
