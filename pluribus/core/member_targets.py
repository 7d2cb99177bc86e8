"""Targets that differ from member to member, as the answers of a teacher's members do.

A method deals whole rows: MIMO shuffles and repeats them, a deep ensemble hands them to its parts. So each row carries the
targets of all members, `[B, T, …]`, and is dealt like any other row, to `[M, B, T, …]`. Then every member takes its own: no
method needs to know about it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .pytrees import count_rows

if TYPE_CHECKING:
    from .ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class MemberTargets:
    """Targets for T members: `values` is `[B, T, …]`, and member m learns `values[:, m mod T]`.

    Raises ValueError if there are not two axes.

    >>> import pluribus
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 3), pluribus.DeepEnsemble(members=2))
    >>> probabilities = torch.rand(5, 2, 3).softmax(2)
    >>> ensemble.loss(torch.randn(5, 4), MemberTargets(probabilities)).shape
    torch.Size([])
    """

    values: Tensor

    def __post_init__(self) -> None:
        if self.values.dim() < 2 or 0 in self.values.shape[:2]:
            raise ValueError(f"targets of members must be [rows, members, …], got the shape {list(self.values.shape)}")

    def deal(self, ensemble: "Ensemble", x: Any) -> tuple[Any, Tensor]:
        """`ensemble.deal` for a batch x `[B, …]` → views, and each member's own targets, `[M, B, …]`."""
        views, dealt = ensemble.deal(x, self.values)
        return views, self.select_own(dealt)

    def select_own(self, dealt: Tensor) -> Tensor:
        """Each member's own targets of what was dealt to it: `[M, B, T, …]` → `[M, B, …]`."""
        members = torch.arange(dealt.shape[0], device=dealt.device)
        return dealt[members, :, members % self.values.shape[1]]


def deal_targets(ensemble: "Ensemble", x: Any, y: "Tensor | MemberTargets") -> tuple[Any, Tensor]:
    """How a batch and its targets of either kind reach the members → views, targets `[M, B, …]`.

    Raises ValueError if there is not a target for each row.
    """
    values = y.values if isinstance(y, MemberTargets) else y
    rows = len(values) if ensemble.batch_axis is None and values.dim() else count_rows(x)
    if values.dim() == 0 or len(values) != rows:
        raise ValueError(f"there must be a target for each of {rows} rows, got targets of shape {list(values.shape)}")
    return y.deal(ensemble, x) if isinstance(y, MemberTargets) else ensemble.deal(x, y)
