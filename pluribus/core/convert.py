"""One call turns any network into an ensemble."""

from collections.abc import Sequence
from typing import Any, Literal

from torch import nn

from .ensemble import Ensemble
from .predictive import Task, require_class_axis
from .spec import Spec, require_choice
from .surgery import Subject
from .taking_apart import convert_opened, take_apart
from .target_distribution import TargetDistribution, add_head, find_distribution, find_head
from .target_noise import TargetNoise, read_noise
from .target_quantiles import TargetQuantiles, read_quantiles


def ensemble(
    net: nn.Module,
    spec: Spec,
    *,
    example: Any = None,
    task: Task = "classification",
    output: int | str | None = None,
    class_axis: Literal[1, -1] = 1,
    batch_axis: Literal[0] | None = 0,
    noise: TargetNoise | Literal["none", "gaussian", "beta-nll"] | None = None,
    quantiles: TargetQuantiles | Sequence[float] | None = None,
) -> Ensemble:
    """Turn a copy of `net` into the ensemble that `spec` describes. `net` itself stays untouched.

    `example` is a batch that `net` takes (a tensor; a tuple or a dictionary of them for several arguments). With it the order
    in which layers run is known rather than guessed, and a mistake shows now rather than in the first pass.
    `task` is "classification" (outputs are logits) or "regression". `output` says which one is meant of a network that
    returns several: an index or a key.

    `noise` lets the network of a regression predict a variance beside each mean: its last layer gets twice its outputs, and the
    loss is the Gaussian likelihood ("gaussian") or the β-NLL with β = 0.5 ("beta-nll"), which fits the means better; or that of
    a `TargetNoise(beta=…)`. Members then answer with means and variances, `[M, B, 2C]`, which a `Predictive` tells apart.

    `quantiles` lets it predict these quantiles of the targets beside each mean, for intervals whose ends are learnt: the last
    layer gets 1 + Q times its outputs, and the loss is the squared error plus the pinball losses. Members then answer with
    means and rising quantiles, `[M, B, (1 + Q)C]`.

    `batch_axis=None` says that an input is one whole, as the nodes of one graph and its edges are: it is never cut into rows,
    and the members run one after the other.

    Raises: ValueError if an argument makes no sense, ConversionError if the network cannot be changed so.

    Classes are on the axis after the batch, `[B, C, …]`, as torch's cross-entropy has them; `class_axis=-1` says that they are
    on the last, `[B, …, C]`, as those of a language model are: outputs are `[M, B, T, V]`. One column, or none, is the logit of
    a yes. A target of −100 is left out of the loss. A network that takes one dictionary gets it in a tuple:
    `ensemble(({...},))`.

    >>> import torch, pluribus
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> three = pluribus.ensemble(net, pluribus.MIMO(members=3))
    >>> three(torch.randn(5, 4)).shape
    torch.Size([3, 5, 3])
    >>> three.predict(torch.randn(5, 4)).probs.shape
    torch.Size([5, 3])
    >>> sure = pluribus.ensemble(net, pluribus.MIMO(members=3), task="regression", noise="beta-nll")
    >>> sure.predict(torch.randn(5, 4)).noise_variance.shape
    torch.Size([5, 3])
    >>> ends = pluribus.ensemble(net, pluribus.MIMO(members=3), task="regression", quantiles=(0.05, 0.95))
    >>> low, high = ends.predict(torch.randn(5, 4)).quantiles
    >>> low.shape, bool((low < high).all())
    (torch.Size([5, 3]), True)
    """
    if isinstance(net, Ensemble):
        raise TypeError("net is an ensemble already: for an ensemble of ensembles use DeepEnsemble(members, of=spec)")
    if not isinstance(net, nn.Module):
        raise TypeError(f"net must be an nn.Module, got {type(net).__name__}")
    if not isinstance(spec, Spec):
        cure = f": write {spec.__name__}()" if isinstance(spec, type) and issubclass(spec, Spec) else ""
        raise TypeError(f"spec must be a method such as pluribus.MIMO(members=3), got {spec!r}{cure}")
    require_choice("task", task, ("classification", "regression"))
    require_class_axis(class_axis, task)
    require_choice("batch_axis", batch_axis, (0, None))
    wanted = read_distribution(noise, quantiles)
    if wanted is not None:
        if task != "regression":
            raise ValueError(f"{wanted.option}= is of a regression's targets, and this is a classification: leave it out")
        net = add_head(net, wanted, example, output)
    converted = convert_opened(
        spec, Subject(take_apart(net, spec.get_takes_apart()), example, task, output, None, class_axis, batch_axis)
    )
    predicted = find_distribution(net)
    if predicted is not None:
        said = f"{find_head(net) or 'the last layer'} {predicted.explain()}"
        converted.conversion.details[f"{predicted.option} of the targets"] = [said]
    if example is not None:
        converted.executor.prepare(converted, example)
    return converted


def read_distribution(
    noise: TargetNoise | str | None, quantiles: TargetQuantiles | Sequence[float] | None
) -> TargetDistribution | None:
    """What the members predict beside the mean. Raises ValueError if an argument makes no sense, or if there are both.

    >>> read_distribution(None, (0.1, 0.9)), read_distribution("none", None)
    (TargetQuantiles(levels=(0.1, 0.9)), None)
    """
    variance, levels = read_noise(noise), read_quantiles(quantiles)
    if variance is not None and levels is not None:
        raise ValueError("noise= and quantiles= both say how uncertain a row is: choose one of them")
    return variance or levels
