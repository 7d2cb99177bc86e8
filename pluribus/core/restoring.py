"""Back to the network that was converted, with the best single set of weights that an ensemble has."""

from typing import Any

import torch
from torch import Tensor, nn

from .ensemble import Ensemble
from .output import PickOutput
from .surgery import Subject


def restore(ensemble: Ensemble, x: Any = None, y: Any = None) -> nn.Module:
    """Return a copy of the network that was converted, with the best single set of weights that the ensemble has.

    It has the network's own class and its parameters, so that its state can be loaded into the network, and it returns what the
    network returns. It is in evaluation mode. The ensemble stays as it is.

    Which weights these are: of an ensemble that is one network (`Single`, `Inner`), its own, folded; of noise about a mean
    (`MCDropout`, `VariationalDropout`), the mean, and the network's own dropout is back. Of several networks it is the one with
    the lowest loss on rows `x`, `y`; without rows it is member 0, which is as good as any other. It is not the mean of their
    weights: members part, and between two of them there may be no good network. A member of `MIMO` is what it answers to
    equal inputs.

    Args:
        ensemble: a trained ensemble.
        x, y: rows that were not trained on, as `ensemble.predict` takes them, and a target for each, `[B, …]`.

    Raises:
        Unsupported: no set of weights makes that network answer as the ensemble does: `Maxout`, `Variance`, and networks that
            predict noise or quantiles beside means, whose last layer is wider than it was.
        ValueError: x came without y, or y without x.

    >>> import torch, pluribus
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> ensemble = pluribus.ensemble(net, pluribus.LowRank(members=3))
    >>> restored = restore(ensemble, torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1]))
    >>> net.load_state_dict(restored.state_dict())
    <All keys matched successfully>
    """
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"restore takes an ensemble, got {type(ensemble).__name__}: make one with pluribus.ensemble(net, spec)")
    if (x is None) != (y is None):
        missing, there = ("y", "x") if y is None else ("x", "y")
        raise ValueError(f"rows and their targets choose the member: pass {missing}, too, or leave {there} out")
    if ensemble.distribution is not None:
        raise ensemble.refuse(
            "network of the class that was converted",
            f"its last layer answers with {ensemble.distribution.answers}, and is wider than it was; use member(i)",
        )
    net = ensemble.network(0)
    if x is not None and ensemble.count_networks() > 1:
        nets = (ensemble.network(index) for index in range(ensemble.count_networks()))
        net = min(nets, key=lambda each: measure_loss(ensemble, each, x, torch.as_tensor(y)))
    for key, hook in list(net._forward_hooks.items()):
        if isinstance(hook, PickOutput):  # the network returns all that it returned before it was converted
            del net._forward_hooks[key]
    return net


def measure_loss(ensemble: Ensemble, net: nn.Module, x: Any, y: Tensor) -> float:
    """The loss of one of the ensemble's networks."""
    alone = Ensemble(Subject(net, None, ensemble.task, ensemble.output), ensemble.spec, 1, {})
    return ensemble.criterion(alone.predict(x).outputs[0], y).item()
