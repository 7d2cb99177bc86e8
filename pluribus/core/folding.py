"""What folding leaves: plain modules that need nothing of ours but these few lines."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .branching import detach_branches
from .members import Converted, MemberLayer
from .output import PickOutput, select_output
from .passes import Pass, Plan, running
from .repeated_rows import detach_repeats
from .surgery import copy_with
from .taking_apart import put_together


class Stack(nn.Module):
    """Plain members side by side, each `[B, …]` → `[B, C]`: together `[M, B, C]`."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        if len(self.nets) == 1:
            return self.nets[0](*args, **kwargs).unsqueeze(0)
        return torch.stack([net(*args, **kwargs) for net in self.nets])


class Chain(nn.Module):
    """Folded ensembles one after the other: each answers `[M_i, B, C]`, together `[Σ M_i, B, C]`."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.cat([net(*args, **kwargs) for net in self.nets])


class SplitMembers(nn.Module):
    """A plain network whose last layer answers for M members: `[M·B, C]` → `[M, B, C]`."""

    def __init__(self, net: nn.Module, count: int, output: int | str | None = None) -> None:
        super().__init__()
        self.net, self.count, self.output = net, count, output

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return select_output(self.net(*args, **kwargs), self.output).unflatten(0, (self.count, -1))


def copy_plain(net: nn.Module, form: Callable[[Converted], nn.Module]) -> nn.Module:
    """A copy of the network in evaluation mode, with every converted layer in the plain form that `form` gives."""
    layers = [module for module in net.modules() if isinstance(module, Converted)]
    ours = set(net.modules())
    memo: dict[int, Any] = {}
    for layer in layers:
        new = form(layer)
        # A part of the ensemble itself is copied, all of them with one memo: what they tie stays tied.
        memo[id(layer)] = copy.deepcopy(new, memo) if new in ours else new
    plain = copy_with(net, memo)
    detach_branches(plain)
    detach_repeats(plain)
    return put_together(plain).eval()


def prepare_member(net: nn.Module, output: int | str | None) -> nn.Module:
    """The plain member, which answers with the one output that is meant, `[B, C]`.

    It keeps the class and the parameter names of the network that was converted, so that its state can be loaded there.
    """
    if output is not None:
        net.register_forward_hook(PickOutput(output))
    return net


def freeze_layers(net: nn.Module, count: int, plan: Plan) -> None:
    """Fix the draws of `count` members in every layer that draws."""
    with running(Pass(count, plan=plan)):
        for layer in net.modules():
            if isinstance(layer, MemberLayer):
                layer.freeze(count)
