"""What `ensemble.predict` takes: rows as a batch or a loader, which members are to answer them, and until when."""

import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import torch
from torch import Tensor

from .answer import ClassAxis, Task
from .anytime import AnytimePredictive, predict_until
from .errors import PluribusError
from .prediction import predict_members, predict_summary
from .predictive import Predictive, PredictiveSummary
from .spec import require_count, require_number, require_share
from .target_distribution import TargetDistribution
from .target_noise import TargetNoise
from .target_quantiles import TargetQuantiles

if TYPE_CHECKING:
    from .ensemble import Ensemble


class Answering:
    """The part of an ensemble's contract that answers rows without training."""

    task: Task
    class_axis: ClassAxis
    """Where the classes of the network's output are."""
    distribution: TargetDistribution | None
    """What the members of a regression predict beside the means of its targets; None if they answer with means alone."""

    @property
    def noise(self) -> TargetNoise | None:
        """How the members of a regression predict the noise of its targets; None if they do not."""
        return self.distribution if isinstance(self.distribution, TargetNoise) else None

    @property
    def quantile_levels(self) -> tuple[float, ...]:
        """Which quantiles of the targets the members of a regression predict, lowest first; empty if none."""
        return self.distribution.levels if isinstance(self.distribution, TargetQuantiles) else ()

    def interpret(self, outputs: Tensor) -> Predictive:
        """The prediction that outputs `[M, B, …]` are, of the ensemble itself or of what `fold()` made of it.

        >>> import pluribus
        >>> from torch import nn
        >>> ensemble = pluribus.ensemble(nn.Linear(4, 1), pluribus.Single(), task="regression", noise="gaussian")
        >>> with torch.no_grad():
        ...     ensemble.interpret(ensemble.fold()(torch.zeros(2, 4))).noise_variance.flatten()
        tensor([1., 1.])
        """
        return Predictive(outputs, self.task, self.noise is not None, self.quantile_levels, self.class_axis)

    @overload
    def predict(
        self, x: Any, batch_size: int | None = None, members: bool | int | Sequence[int] = True, *, until: float
    ) -> AnytimePredictive: ...
    @overload
    def predict(self, x: Any, batch_size: int | None = None, *, members: Literal[False]) -> PredictiveSummary: ...
    @overload
    def predict(self, x: Any, batch_size: int | None = None, members: bool | int | Sequence[int] = True) -> Predictive: ...
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        members: bool | int | Sequence[int] = True,
        *,
        until: float | None = None,
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

        `until=0.95` asks one member after the other (few by few, if they share more than half of their work), and stops at each
        row as soon as a class has this probability in the mean over the members so far. The result, an `AnytimePredictive`,
        holds averages, as with `members=False`; `used`, how many members each row took; and `saved`, the share of the forward
        passes of all members that was not needed. `members` may say which members to ask, and in which order.

        Raises `ValueError` or `IndexError` if there are no such members, and `Unsupported` with `until` where nothing can be
        saved, because members share most of their work, as those of MIMO and Multihead do.

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
        >>> ensemble.predict(torch.randn(10, 4), until=0.1).used
        tensor([1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
        """
        return predict_rows(cast("Ensemble", self), x, batch_size, members, until)


def predict_rows(
    ensemble: "Ensemble",
    x: Any,
    batch_size: int | None = None,
    members: bool | int | Sequence[int] = True,
    until: float | None = None,
) -> Predictive | PredictiveSummary:
    """The answer to all rows of a batch or loader: see `Answering.predict`."""
    if batch_size is not None:
        require_count("batch_size", batch_size, 1, "rows are answered in chunks of at least one")
    if until is not None:
        require_number("until", until, positive=True)
        require_share("until", until)
    chosen = choose_members(ensemble, members)
    try:
        with torch.no_grad():
            if until is not None:
                return predict_until(ensemble, x, until, batch_size, chosen)
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
