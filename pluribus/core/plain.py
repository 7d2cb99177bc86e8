"""What folding leaves: plain modules, made of ordinary layers only."""

from typing import Any

import torch
from torch import Tensor, nn

from .affine import Affine, parts
from .errors import Unsupported
from .members import MemberLayer, Members


class Stack(nn.Module):
    """Plain networks side by side: `[B, …]` → `[M, B, C]`.

    `output` is the key of the output that is meant, for networks that return several.
    """

    def __init__(self, nets: list[nn.Module], output: int | str | None = None) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)
        self.output = output

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.stack([meant(net(*args, **kwargs), self.output) for net in self.nets])


class Chain(nn.Module):
    """Folded ensembles one after the other: each answers `[M_i, B, C]`, together `[Σ M_i, B, C]`."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.cat([net(*args, **kwargs) for net in self.nets])


class Opened(nn.Module):
    """A plain network whose last layer answers for M members: `[M·B, C]` → `[M, B, C]`."""

    def __init__(self, net: nn.Module, count: int, output: int | str | None = None) -> None:
        super().__init__()
        self.net, self.count, self.output = net, count, output

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return meant(self.net(*args, **kwargs), self.output).unflatten(0, (self.count, -1))


def meant(answer: Any, output: int | str | None) -> Tensor:
    return answer if output is None else answer[output]


class Heads(MemberLayer):
    """A last layer with weights of its own for every member: `weight` `[M, …]`, `bias` `[M, C]` or None."""

    def __init__(self, layer: nn.Module, members: Members, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__(members)
        self.affine = Affine(layer)
        old_weight, old_bias = parts(layer)
        self.weight = nn.Parameter(weight, old_weight.requires_grad)
        self.bias = None if bias is None or old_bias is None else nn.Parameter(bias, old_bias.requires_grad)

    @property
    def shares(self) -> bool:
        # Also of a batch that was dealt: by then the network's first layer has merged it.
        return self.branches

    def respond(self, x: Tensor) -> Tensor:
        return self.affine.each(x, self.pick(self.weight), None if self.bias is None else self.pick(self.bias))

    def plain(self, index: int) -> nn.Module:
        return self.affine.plain(self.weight[index], None if self.bias is None else self.bias[index])

    def folded(self) -> nn.Module:
        """All heads as one wide plain layer."""
        if self.affine.groups > 1 or self.affine.transposed is not None:
            raise Unsupported("heads that are grouped or transposed convolutions have no wide form: use member(i)")
        wide = self.affine.plain(self.weight.flatten(0, 1), None if self.bias is None else self.bias.flatten())
        setattr(wide, "out_features" if self.affine.linear else "out_channels", self.weight.shape[:2].numel())
        return WideHeads(wide, self.weight.shape[0], -1 if self.affine.linear else 1)


class WideHeads(nn.Module):
    """One plain layer with M·C outputs, answered member by member: `[B, …]` → `[M·B, …]`."""

    def __init__(self, layer: nn.Module, count: int, axis: int) -> None:
        super().__init__()
        self.layer, self.count, self.axis = layer, count, axis

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        axis = self.axis % y.dim()
        return y.unflatten(axis, (self.count, -1)).movedim(axis, 0).flatten(0, 1)
