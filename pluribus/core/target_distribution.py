"""Regression whose network predicts more of its targets than their mean: their variance, or some of their quantiles.

The last layer gets 1 + K times its outputs: first the means, which stay as they were, then K blocks of the same size. A head
turns the blocks into what they stand for: one variance (`target_noise.py`), or K quantiles (`target_quantiles.py`).
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from . import pytrees
from .affine import AFFINE, Affine, get_weight_and_bias
from .branching import dry_run
from .errors import ConversionError, FileError
from .output import select_output
from .surgery import Subject, carry_hooks, copy_with
from .texts import quote


class TargetDistribution(abc.ABC):
    """What a network predicts of its targets beside their mean, and by which loss it learns that."""

    kinds: ClassVar[dict[str, type["TargetDistribution"]]] = {}
    """By the argument of `pluribus.ensemble` that asks for them, under which a file of weights describes them, too."""
    option: ClassVar[str]
    answers: ClassVar[str]
    """What the members answer with, in words."""

    def __init_subclass__(cls) -> None:
        TargetDistribution.kinds[cls.option] = cls

    @property
    @abc.abstractmethod
    def starts(self) -> tuple[float, ...]:
        """What each of the K blocks answers before it has learnt anything."""

    @abc.abstractmethod
    def make_head(self, layer: nn.Module) -> "TargetHead":
        """The head around a layer that has been widened."""

    @abc.abstractmethod
    def compute_loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean loss of outputs `[B, (1 + K)C, …]`. Raises ValueError if the targets do not have the shape of the means."""

    @abc.abstractmethod
    def explain(self) -> str:
        """What is answered, and how it is learnt, in words."""

    @abc.abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What a file of weights says about it."""

    @classmethod
    @abc.abstractmethod
    def from_json(cls, about: Mapping[str, Any]) -> "TargetDistribution":
        """What `to_json` described. Raises ValueError if that is damaged."""


class TargetHead(nn.Module, abc.ABC):
    """A widened last layer and what its blocks stand for: `[B, …]` → `[B, (1 + K)C, …]`, the means first."""

    def __init__(self, layer: nn.Module, distribution: TargetDistribution) -> None:
        super().__init__()
        self.layer, self.distribution = layer, distribution
        self.axis = -1 if isinstance(layer, nn.Linear) else 1

    @abc.abstractmethod
    def interpret(self, blocks: Sequence[Tensor]) -> Sequence[Tensor]:
        """What the K blocks of the layer stand for, each in its own shape."""

    def forward(self, x: Tensor) -> Tensor:
        mean, *blocks = self.layer(x).chunk(1 + len(self.distribution.starts), self.axis)
        wide = torch.promote_types(mean.dtype, torch.float)  # an exponential leaves the range of half precision
        return torch.cat([mean.to(wide), *self.interpret([block.to(wide) for block in blocks])], self.axis)

    def extra_repr(self) -> str:
        return str(self.distribution)


def find_distribution(net: nn.Module) -> TargetDistribution | None:
    """What a network predicts of its targets beside the mean; None if that is nothing."""
    return next((module.distribution for module in net.modules() if isinstance(module, TargetHead)), None)


def find_head(net: nn.Module) -> str | None:
    """The name of the layer that answers with more than means."""
    return next((name for name, module in net.named_modules() if isinstance(module, TargetHead)), None)


def add_head(net: nn.Module, wanted: TargetDistribution, example: Any = None, output: int | str | None = None) -> nn.Module:
    """A copy of the network that also answers with what is `wanted`: nothing yet learnt, the same for all rows.

    Its last layer (the last to run on the `example`; without one, the last that was registered) is replaced by a `TargetHead`.
    The means stay as they were. Raises ConversionError if there is no such layer, or if, on the example, something is done to
    its answer that would make something else of it.
    """
    found = find_distribution(net)
    if found is not None:
        raise ConversionError(f"the network answers with {found.answers} already: leave {wanted.option}= out")
    subject = Subject(net, example)
    layers = list(subject.layers(AFFINE))
    if not layers:
        raise ConversionError(f"{wanted.option}= needs a last layer that can be widened, and {type(net).__name__} has none")
    made = replace_layer(net, layers[-1], wanted)
    if example is not None:
        check_answer(net, made, wanted, example, output)
    return made


def replace_layer(net: nn.Module, name: str, wanted: TargetDistribution) -> nn.Module:
    """A copy of the network with a `TargetHead` in the place of the layer of this name."""
    layer = dict(net.named_modules()).get(name)
    if not isinstance(layer, AFFINE):
        raise ConversionError(f"{wanted.option}= widens the last layer, and the network has no such layer {name!r}")
    head = wanted.make_head(widen_layer(layer, wanted)).train(layer.training)
    return copy_with(net, {id(layer): head})


def widen_layer(layer: nn.Module, wanted: TargetDistribution) -> nn.Module:
    """The layer with 1 + K times its outputs; all but the first of them are zero."""
    affine, count = Affine(layer), len(wanted.starts)
    if affine.groups > 1:
        raise ConversionError(
            f"{wanted.option}= cannot widen a convolution in groups: end the network with a layer without groups"
        )
    weight, bias = get_weight_and_bias(layer)
    axis = 0 if affine.transposed is None else 1
    wide = affine.make_layer(
        torch.cat([weight, *[torch.zeros_like(weight)] * count], axis),
        None if bias is None else torch.cat([bias, *[torch.zeros_like(bias)] * count]),
    )
    setattr(wide, "out_features" if affine.linear else "out_channels", (1 + count) * affine.outputs)
    return carry_hooks(layer, wide)


def check_answer(net: nn.Module, made: nn.Module, wanted: TargetDistribution, example: Any, output: int | str | None) -> None:
    """Raise ConversionError unless the widened network answers with the means of the other one, and blocks at their start."""
    before, after = (run_trial(copy_with(each, {}), example, output) for each in (net, made))
    columns, times = before.shape[1] if before.dim() > 1 else 1, 1 + len(wanted.starts)
    means = after[:, :columns] if after.dim() > 1 else after
    fits = after.dim() > 1 and after.shape[1] == times * columns and means.numel() == before.numel()
    if not fits or not torch.allclose(means.reshape(before.shape), before.to(means.dtype), rtol=1e-3, atol=1e-5):
        raise ConversionError(
            f"{wanted.option}= gives the last layer {times} times its outputs, and {type(net).__name__} then answers "
            f"{list(after.shape)}, not {[len(before), times * columns, *before.shape[2:]]}: let it return what its last layer "
            "returns"
        )
    for block, start in zip(after[:, columns:].split(columns, 1), wanted.starts, strict=True):
        if not torch.allclose(block, torch.full_like(block, start), rtol=1e-3, atol=1e-5):
            raise ConversionError(
                f"{wanted.option}= needs a network that returns what its last layer returns, and {type(net).__name__} does "
                "something to it afterwards: leave that out, and standardise the targets instead"
            )


def run_trial(net: nn.Module, example: Any, output: int | str | None) -> Tensor:
    """The answer of a network, which may be changed, in evaluation mode."""
    with dry_run(net):
        return select_output(pytrees.call_network(net, example), output)


def split_blocks(output: Tensor, target: Tensor, wanted: TargetDistribution) -> tuple[Tensor, ...]:
    """The target, the mean and the K blocks of outputs `[B, (1 + K)C, …]`, `[B, C, …]` each.

    Raises ValueError if the outputs cannot be split so, or the targets do not have the shape of the means.
    """
    times = 1 + len(wanted.starts)
    if output.dim() < 2 or output.shape[1] % times:
        raise ValueError(
            f"a network that predicts {wanted.answers} must answer [rows, {times}C, …], got {list(output.shape)}: pass "
            "example=, so that its last layer is found"
        )
    mean, *blocks = output.chunk(times, 1)
    if [n for n in target.shape if n != 1] != [n for n in mean.shape if n != 1]:
        raise ValueError(f"targets must have the shape of the means, {list(mean.shape)}, got {list(target.shape)}")
    return target.view_as(mean).to(mean.dtype), mean, *blocks


def describe_head(net: nn.Module) -> dict[str, Any]:
    """What `save` writes: the layer and what it predicts, under the name of the option; nothing of a network of means."""
    found = find_distribution(net)
    return {} if found is None else {found.option: {"layer": find_head(net)} | found.to_json()}


def restore_head(net: nn.Module, about: Mapping[str, Any]) -> nn.Module:
    """The network that was saved, from what `describe_head` returned. Raises FileError if that is damaged."""
    if find_distribution(net) is not None:
        return net
    for option, kind in TargetDistribution.kinds.items():
        described = about.get(option)
        if described is None:
            continue
        if not isinstance(described, Mapping) or not isinstance(described.get("layer"), str):
            raise FileError(f"its {option} must name a layer, got {quote(described)}")
        try:
            return replace_layer(net, described["layer"], kind.from_json(described))
        except (ConversionError, ValueError) as error:
            raise FileError(str(error)) from error
    return net
