"""One network under the contract of many: the base that every method is compared with.

With `dropout`, what enters its last layer is dropped at that rate while it is trained. So the plain network can be regularised
as the methods are, and still answers as one network without noise.

Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR 2014.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from ..core.affine import AFFINE
from ..core.ensemble import Ensemble
from ..core.members import Converted, Likeness
from ..core.spec import Keeps, Spec, require_share
from ..core.surgery import Subject, copy_with


@dataclass(frozen=True)
class Single(Spec):
    """The network as it is: one member. `dropout` is the rate of dropout before its last layer, in training only.

    >>> import torch, pluribus
    >>> net = torch.nn.Linear(3, 2)
    >>> pluribus.ensemble(net, Single())(torch.zeros(5, 3)).shape
    torch.Size([1, 5, 2])
    """

    name: ClassVar[str] = "single"
    keeps: ClassVar[Keeps] = "predictions"
    role: ClassVar[Literal["baseline", "reference", ""]] = "baseline"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"dropout": (0.0, 0.1, 0.3)}

    takes_apart: ClassVar[tuple[str, ...]] = ("conv1d",)

    dropout: float = 0.0

    def check(self) -> None:
        require_share("dropout", self.dropout, below_one=True)

    def convert(self, subject: Subject) -> Ensemble:
        if self.dropout == 0:
            return Ensemble(subject, self, 1, {})
        last = subject.one(AFFINE, None, -1, "last")
        return Ensemble(subject, self, 1, {last: Regularized(subject.modules[last], self.dropout)})


class Regularized(Converted):
    """A layer with dropout before it while it is trained; in evaluation, the layer alone."""

    holds_original = True

    def __init__(self, layer: nn.Module, rate: float) -> None:
        super().__init__()
        self.likeness = Likeness(layer)
        self.rate = rate
        self.layer = copy_with(layer, {})

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.layer(F.dropout(x, self.rate, self.training), *args, **kwargs)

    def to_plain(self, index: int) -> nn.Module:
        return copy_with(self.layer, {})

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
