"""Deep-ensemble equivalents: how many independent networks answer as well as a method does.

With c(l) the calibrated NLL of deep ensembles of l = 1 … M networks, made non-increasing and linear between the sizes,

    equivalents(method) = min { l : c(l) ≤ calibrated NLL of the method }

Nothing is extrapolated: a method that is worse than one network is worth less than 1 (`below`), one that is better than all M
networks more than M (`above`). The interval is over the draws of the paired bootstrap, in each of which curve and method are of
the same rows and seeds.

Ashukha et al., "Pitfalls of in-domain uncertainty estimation and ensembling in deep learning", ICLR 2020, section 5.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..metrics.intervals import Interval, central_interval
from ..reports.values import format_with_spread, parse_value
from .statistics import PairedBootstrap

Json = dict[str, Any]


def find_equivalents(curve: Tensor, nll: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The smallest number of networks, linear between whole ones, whose NLL is at most that of a method.

    Args: `curve` `[…, M]`, the NLL of 1 … M networks, which need not fall; `nll` `[…]` of the method.
    Returns: the number from 1 to M, and two masks, whether it is in truth below 1 and above M; `[…]` each.

    >>> curve = torch.tensor([1.0, 0.5, 0.25])
    >>> [find_equivalents(curve, torch.tensor(x))[0].item() for x in (1.0, 0.75, 0.25)]
    [1.0, 1.5, 3.0]
    """
    falling = curve.cummin(-1).values
    reached = falling <= nll.unsqueeze(-1)
    below, above = nll > falling[..., 0], ~reached.any(-1)
    last = torch.where(above, falling.shape[-1] - 1, reached.long().argmax(-1)).unsqueeze(-1)  # the first size that suffices
    after, before = falling.gather(-1, last).squeeze(-1), falling.gather(-1, (last - 1).clamp_min(0)).squeeze(-1)
    missing = torch.where(before > after, (nll - after) / (before - after), 0.0).clamp(0, 1)
    found = torch.where(above | (last.squeeze(-1) == 0), last.squeeze(-1).to(nll.dtype), last.squeeze(-1) - missing)
    return found + 1, below, above


@dataclass(frozen=True)
class EquivalentsCurve:
    """The calibrated NLL of deep ensembles of every size, in every draw of the bootstrap that the methods are in."""

    draws: PairedBootstrap
    sizes: tuple[str, ...]
    """What ensembles of 1 … M networks are called in `draws`."""

    @property
    def most(self) -> int:
        """The size M of the largest deep ensemble."""
        return len(self.sizes)

    def measure(self, name: str) -> Json:
        """The equivalents of a method: value, low and high of the 95 % interval, whether it is below 1 or above M, and M."""
        values = torch.tensor([self.draws.values[size] for size in self.sizes], dtype=torch.double)
        value, below, above = find_equivalents(values, torch.tensor(self.draws.values[name], dtype=torch.double))
        drawn, _, _ = find_equivalents(torch.stack([self.draws.drawn[s] for s in self.sizes], 1), self.draws.drawn[name])
        found = Interval(value.item(), *central_interval(drawn))
        return found._asdict() | {"below": bool(below), "above": bool(above), "most": self.most}

    def describe(self, method: str, latency: float | None) -> Json:
        """The entry of results.json: the NLL of 1 … M networks, and their latency if that of all M was measured."""
        return {
            "method": method,
            "nll": [self.draws.interval(size)._asdict() for size in self.sizes],
            "latency": None if latency is None else [estimate_latency(latency, n, self.most) for n in range(1, self.most + 1)],
        }


def format_equivalents(found: Json) -> str:
    """Equivalents with their interval, as text.

    >>> format_equivalents({"value": 2.31, "low": 1.0, "high": 4.0, "below": False, "above": False, "most": 4})
    '2.3 (≤ 1 to ≥ 4)'
    >>> format_equivalents({"value": 4.0, "low": 3.2, "high": 4.0, "below": False, "above": True, "most": 4})
    '> 4 (3.2 to ≥ 4)'
    """
    value = parse_value(found)
    return format_with_spread(value, "equivalents") if value else ""


def estimate_latency(latency: float, size: int, most: int) -> float:
    """The latency of `size` of `most` networks, as a ratio to one network, whose own is 1; linear in between.

    It is `size` where networks run one after the other. Members that are stacked into one layer cost less than their number.

    >>> estimate_latency(4.0, 2, 4), estimate_latency(2.5, 3, 4)
    (2.0, 2.0)
    """
    return 1 + (latency - 1) * (size - 1) / (most - 1) if most > 1 else latency
