"""One call turns any network into an ensemble."""

from typing import Any

from torch import nn

from .ensemble import Ensemble
from .predictive import Task
from .spec import Spec, require_choice
from .surgery import Subject


def ensemble(
    net: nn.Module,
    spec: Spec,
    *,
    example: Any = None,
    task: Task = "classification",
    output: int | str | None = None,
) -> Ensemble:
    """Turn a copy of `net` into the ensemble that `spec` describes. `net` itself stays untouched.

    `example` is a batch that `net` takes (a tensor; a tuple or a dictionary of them for several arguments). With it the order
    in which layers run is known rather than guessed, and a mistake shows now rather than in the first pass.
    `task` is "classification" (outputs are logits) or "regression". `output` says which one is meant of a network that
    returns several: an index or a key.

    Classes are on the axis after the batch, `[B, C, …]`, as torch's cross-entropy has them. One column, or none, is the logit
    of a yes. A network that takes one dictionary gets it in a tuple: `ensemble(({...},))`.

    >>> import torch, pluribus
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> three = pluribus.ensemble(net, pluribus.MIMO(members=3))
    >>> three(torch.randn(5, 4)).shape
    torch.Size([3, 5, 3])
    >>> three.predict(torch.randn(5, 4)).probs.shape
    torch.Size([5, 3])
    """
    if isinstance(net, Ensemble):
        raise TypeError("net is an ensemble already: for an ensemble of ensembles use DeepEnsemble(members, of=spec)")
    if not isinstance(net, nn.Module):
        raise TypeError(f"net must be an nn.Module, got {type(net).__name__}")
    if not isinstance(spec, Spec):
        cure = f": write {spec.__name__}()" if isinstance(spec, type) and issubclass(spec, Spec) else ""
        raise TypeError(f"spec must be a method such as pluribus.MIMO(members=3), got {spec!r}{cure}")
    require_choice("task", task, ("classification", "regression"))
    converted = spec.convert(Subject(net, example, task, output))
    if example is not None:
        converted.executor.prepare(converted, example)
    return converted
