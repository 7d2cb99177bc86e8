"""What `ensemble.predict` takes: rows as a batch or a loader, and which members are to answer them."""

import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import torch

from .errors import PluribusError
from .prediction import predict_members, predict_summary
from .predictive import Predictive, PredictiveSummary
from .spec import require_count

if TYPE_CHECKING:
    from .ensemble import Ensemble


class Answering:
    """The part of an ensemble's contract that answers rows without training."""

    @overload
    def predict(self, x: Any, batch_size: int | None = None, *, members: Literal[False]) -> PredictiveSummary: ...
    @overload
    def predict(self, x: Any, batch_size: int | None = None, members: bool | int | Sequence[int] = True) -> Predictive: ...
    def predict(
        self, x: Any, batch_size: int | None = None, members: bool | int | Sequence[int] = True
    ) -> Predictive | PredictiveSummary:
        """Answer in evaluation mode, without gradients, in chunks, so that what is kept of each row is all that adds up.

        `x` is a batch `[B, …]` (a tensor; a tuple or dictionary of them for several arguments), or a DataLoader or other
        iterator of batches: of a batch (x, y) the last element, the targets, is left out. `batch_size` is the number of rows in
        a chunk. Several threads may predict at once, also while another one trains: the ensemble keeps its mode.

        The result holds the outputs of all members, `[M, B, C]`; with `members=False`, only averages over them, `[B, C]`, so
        that memory does not grow with the number of draws.

        `members=2` asks the first two alone, `members=[0, 3]` these two, in this order; the others are not computed. Draws are
        all alike, so of a stochastic method it matters only how many are asked for: at most its `samples`. Members that share
        nearly all work, as those of MIMO and Multihead do, cost as much as all of them.

        Raises `ValueError` or `IndexError` if there are no such members.

        >>> import pluribus
        >>> from torch import nn
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> ensemble = pluribus.ensemble(nn.Linear(4, 3), pluribus.DeepEnsemble(members=4))
        >>> rows = TensorDataset(torch.randn(10, 4), torch.zeros(10))
        >>> ensemble.predict(DataLoader(rows, batch_size=4)).probs.shape
        torch.Size([10, 3])
        >>> len(ensemble.predict(torch.randn(10, 4), members=False))
        10
        >>> ensemble.predict(torch.randn(10, 4), members=[0, 3]).members.shape
        torch.Size([2, 10, 3])
        """
        return predict_rows(cast("Ensemble", self), x, batch_size, members)


def predict_rows(
    ensemble: "Ensemble", x: Any, batch_size: int | None = None, members: bool | int | Sequence[int] = True
) -> Predictive | PredictiveSummary:
    """The answer to all rows of a batch or loader: see `Answering.predict`."""
    if batch_size is not None:
        require_count("batch_size", batch_size, 1, "rows are answered in chunks of at least one")
    chosen = choose_members(ensemble, members)
    try:
        with torch.no_grad():
            return predict_members(ensemble, x, batch_size, chosen) if members else predict_summary(ensemble, x, batch_size)
    except RecursionError:
        if count_predictions() > 1:
            raise PluribusError(
                "predict calls itself without end: a hook, or a module of the network, calls predict of the ensemble that it "
                "is part of, and is called again by it; let it do nothing while such a call of its own runs"
            ) from None
        raise


def count_predictions() -> int:
    """How many predictions run in this thread, one inside the other."""
    count, frame = 0, cast(FrameType | None, sys._getframe())
    while frame is not None:
        count, frame = count + (frame.f_code is predict_rows.__code__), frame.f_back
    return count


def choose_members(ensemble: "Ensemble", members: bool | int | Sequence[int]) -> tuple[int, ...] | None:
    """The numbers of the members that are asked for; None for all of them.

    >>> import pluribus
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 3), pluribus.DeepEnsemble(members=4))
    >>> choose_members(ensemble, 2), choose_members(ensemble, [3, 0]), choose_members(ensemble, True)
    ((0, 1), (3, 0), None)
    """
    if isinstance(members, bool):
        return None
    count = ensemble.count_members(training=False)
    more = "; for more draws set its samples" if ensemble.sampled else ""
    if isinstance(members, int):
        if not 1 <= members <= count:
            raise ValueError(f"members must be from 1 to {count}, as many as there are, got {members}{more}")
        return tuple(range(members))
    chosen = tuple(members)
    for number in chosen:
        require_count("a number of members=[…]", number, 0, f"there are members 0 to {count - 1}")
        if number >= count:
            raise IndexError(f"there are members 0 to {count - 1}, got {number}{more}")
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"members must name at least one member, and each only once, got {list(chosen)}")
    return chosen
