"""Whether a network has room for several members that share its body, as those of MIMO do.

    lost = (fitted₁ − fitted_M) / (fitted₁ − held out₁)        room: lost < 0.4

Members that share a body fit the training rows less well than one network does: that is what sharing costs. One network is less
good on other rows than on those it was trained on: of that gap, members that agree win back a part. `fitted` is the accuracy on
training rows, of one network and of the ensemble.

The threshold was suggested by the digits and MNIST, and judged by CIFAR-10: `papers/mimo/capacity.py`.
"""

from typing import Any, NamedTuple

from torch import Tensor

from ..core.ensemble import Ensemble
from ..metrics.classification import accuracy

ROOM = 0.4


class Room(NamedTuple):
    """The accuracy of one network on training rows and on held-out rows, and that of the members together on training rows."""

    fitted: float
    held_out: float
    fitted_by_members: float

    @property
    def lost_share(self) -> float:
        """How much less well the members fit training rows, as a share of the network's generalisation gap.

        >>> round(Room(fitted=1.0, held_out=0.75, fitted_by_members=0.95).lost_share, 2)
        0.2
        """
        gap = self.fitted - self.held_out
        return (self.fitted - self.fitted_by_members) / gap if gap > 0 else float("inf")

    @property
    def is_enough(self) -> bool:
        """Whether the members are expected to answer better than the network."""
        return self.lost_share < ROOM


def measure_room(one: Ensemble, members: Ensemble, training: tuple[Any, Tensor], held_out: tuple[Any, Tensor]) -> Room:
    """Measure whether a network has room for members that share its body.

    Args:
        one: the network, converted by `Single` and trained.
        members: the same network, converted by `MIMO`, say, and trained alike.
        training: rows that both were trained on, and their classes, `(x, y)`; a few thousand are enough.
        held_out: rows that neither was trained on.

    >>> import pluribus, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> one, two = (pluribus.ensemble(net, spec) for spec in (pluribus.Single(), pluribus.MIMO(members=2)))
    >>> rows = torch.randn(10, 4), torch.arange(10) % 3
    >>> 0 <= measure_room(one, two, rows, rows).fitted <= 1
    True
    """
    (x, y), (other, truth) = training, held_out
    return Room(accuracy(one.predict(x), y), accuracy(one.predict(other), truth), accuracy(members.predict(x), y))
