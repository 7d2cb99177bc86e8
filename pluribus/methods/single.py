"""One network under the contract of many: the base that every method is compared with."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..core.ensemble import Ensemble
from ..core.spec import Keeps, Spec
from ..core.surgery import Subject


@dataclass(frozen=True)
class Single(Spec):
    """The network as it is: one member, nothing changed.

    >>> import torch, pluribus
    >>> net = torch.nn.Linear(3, 2)
    >>> pluribus.ensemble(net, Single())(torch.zeros(5, 3)).shape
    torch.Size([1, 5, 2])
    """

    name: ClassVar[str] = "single"
    keeps: ClassVar[Keeps] = "predictions"
    role: ClassVar[Literal["baseline", "reference", ""]] = "baseline"

    def convert(self, subject: Subject) -> Ensemble:
        return Ensemble(subject, self, 1, {})
