"""Separation: whether the members of a network that takes M inputs at once use units of their own.

    v_i^m = E_{x_n, n ≠ m} Var_{x_m} a_i(x_1, …, x_M)

is the conditional variance of a pre-activation a_i with respect to the input of member m. If a unit serves member m alone, all
other v_i are zero. The text of the paper describes the variance over the other inputs, its formula the variance over x_m: the
formula is used here.

    separation = mean over units of (M · max_m v_i^m / Σ_m v_i^m − 1) / (M − 1)

is 1 if every unit reacts to one input alone, and 0 if every unit reacts to all inputs alike. At a convolution a unit is a
channel, whose variances are averaged over positions. Units that do not react to anything are left out.

Havasi et al., "Training independent subnetworks for robust prediction", ICLR 2021, section 3.3.
"""

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..core import pytrees
from ..core.affine import AFFINE, CONVOLUTIONS, Affine
from ..core.ensemble import Ensemble
from ..core.heads import Heads
from ..core.members import Converted
from ..core.modes import copy_for_evaluation
from ..core.pytrees import Views
from ..core.spec import require_count


@dataclass(frozen=True)
class Separation:
    """The conditional variances of all units."""

    variances: Mapping[str, Tensor]
    """By the name of the layer, `[M, units]`, in double precision."""

    @property
    def shares(self) -> Tensor:
        """Which part of each unit's variance is due to which input, `[M, units of all layers]`, without units that are idle."""
        every = torch.cat(list(self.variances.values()), dim=1)
        total = every.sum(0)
        active = total > total.max() * 1e-12
        return every[:, active] / total[active]

    @property
    def score(self) -> float:
        """The separation: from 0, all units react to all inputs alike, to 1, each unit reacts to one input alone."""
        return _score(self.shares)

    def by_layer(self) -> dict[str, float]:
        """The separation of the units of each layer."""
        return {name: _score(Separation({name: found}).shares) for name, found in self.variances.items()}


def _score(shares: Tensor) -> float:
    count = len(shares)
    return ((count * shares.amax(0) - 1) / (count - 1)).mean().item() if shares.numel() else float("nan")


def measure_separation(ensemble: Ensemble, x: Any, *, contexts: int = 16, seed: int = 0) -> Separation:
    """Measure the conditional variances of the pre-activations of a network that deals its input to the members.

    Every pre-activation is an output of a convolution or a linear layer, the heads excepted.

    Args:
        ensemble: One whose members have inputs of their own, such as MIMO. It is not changed.
        x: A batch `[B, …]` of at least two rows: those that the input of a member takes.
        contexts: How many combinations of the other members' inputs, drawn from the same rows, are averaged over.
        seed: The seed of these combinations.

    Returns:
        A `Separation`.

    Raises:
        ValueError: All members see the same input, or there are fewer than two rows.

    >>> import pluribus
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> ensemble = pluribus.ensemble(net, pluribus.MIMO(members=2))
    >>> found = measure_separation(ensemble, torch.randn(32, 4))
    >>> found.variances["0"].shape, 0 <= found.score <= 1
    (torch.Size([2, 8]), True)
    """
    require_count("contexts", contexts, 1, "the other inputs take some values")
    rows = pytrees.count_rows(x)
    if rows < 2:
        raise ValueError(f"a variance needs at least two rows, got {rows}")
    twin = copy_for_evaluation(ensemble, own_tables=True)
    with torch.no_grad():
        twin(x)  # finds the plan
        if not isinstance(twin.deal(x, torch.zeros(rows, dtype=torch.long))[0], Views):
            raise ValueError(f"all members of {type(ensemble.spec).__name__} see the same input: there is nothing to separate")
        recorder = PreActivations(twin.net)
        generator = torch.Generator().manual_seed(seed)
        sums: dict[str, list[Tensor]] = {}
        for member in range(twin.members):
            for _ in range(contexts):
                others = torch.randint(rows, (twin.members,), generator=generator).tolist()
                twin(deal_context(x, member, others))
                for name, found in recorder.take_variances().items():
                    totals = sums.setdefault(name, [torch.zeros_like(found) for _ in range(twin.members)])
                    totals[member] += found / contexts
        recorder.remove()
    return Separation({name: torch.stack(totals) for name, totals in sums.items()})


def deal_context(x: Any, member: int, others: Sequence[int]) -> Views:
    """Views `[M, B, …]`: all rows for one member, and for each of the others one row, repeated, of these numbers."""

    def deal(leaf: Tensor) -> Tensor:
        return torch.stack([leaf if index == member else leaf[row].expand_as(leaf) for index, row in enumerate(others)])

    return Views(pytrees.map_tensors(deal, x))


class PreActivations:
    """Records the variances over rows of what the layers of a network answer."""

    def __init__(self, net: nn.Module) -> None:
        self.found: dict[str, list[Tensor]] = defaultdict(list)
        self.handles = [
            layer.register_forward_hook(functools.partial(self.record, name)) for name, layer in list_layers(net).items()
        ]

    def record(self, name: str, layer: nn.Module, inputs: Any, answer: Tensor) -> None:
        """Keep the variances over the rows of an answer `[B, …]`, averaged over positions: `[units]`."""
        variance = answer.double().var(0)
        units = variance if is_convolution(layer) else variance.movedim(-1, 0)
        self.found[name].append(units.reshape(len(units), -1).mean(1))

    def take_variances(self) -> dict[str, Tensor]:
        """The variances of each layer's units since the last call, `[units]`; of a layer that ran more than once, the mean."""
        taken = {name: torch.stack(each).mean(0) for name, each in self.found.items()}
        self.found.clear()
        return taken

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def is_convolution(layer: nn.Module) -> bool:
    """Whether the units of a layer are channels, on the axis after the batch; else they are on the last axis."""
    affine = getattr(layer, "affine", None)
    return isinstance(layer, CONVOLUTIONS) or (isinstance(affine, Affine) and not affine.linear)


def list_layers(net: nn.Module) -> dict[str, nn.Module]:
    """The layers with pre-activations: convolutions and linear layers, converted or not, but the heads."""
    kinds: tuple[type[nn.Module], ...] = (*AFFINE, Converted)
    found: dict[str, nn.Module] = {}
    for name, layer in net.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer, module in found.items() if isinstance(module, Converted))
        if isinstance(layer, Heads) or not isinstance(layer, kinds) or inside:
            continue
        found[name] = layer
    return found
