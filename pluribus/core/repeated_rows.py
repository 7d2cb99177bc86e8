"""Layers that run after members have parted and before they differ: they compute one member's rows, and repeat the answer.

Members part on entering a block whose shortcut goes around their first own layer. What stands before that layer in the block
gets the same rows M times. This holds in passes without gradients alone: gradient checkpointing computes such a layer again in
the backward pass, which no longer knows the members.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import pytrees
from .affine import AFFINE
from .passes import Branch, Pass, get_pass


class TakeOneMember:
    """A forward pre-hook that passes the first member's rows on."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        current = get_pass()
        if current is None or not gets_repeated_rows(self.name, module, current):
            return None
        return (args[0][: args[0].shape[0] // current.computed], *args[1:])


class RepeatAnswer:
    """A forward hook that gives every member the answer."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: nn.Module, args: Any, answer: Tensor) -> Tensor | None:
        current = get_pass()
        if current is None or not gets_repeated_rows(self.name, module, current):
            return None
        return pytrees.repeat_rows(answer, current.computed)


def gets_repeated_rows(name: str, module: nn.Module, current: Pass) -> bool:
    """Whether a layer may run on one member's rows in this pass."""
    if name not in current.plan.repeated or current.only is not None or current.dealt:
        return False
    return not torch.is_grad_enabled() and not is_watched(module)


def is_watched(module: nn.Module) -> bool:
    """Whether a module has other hooks, which are to see the rows of all members."""
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    return any(not isinstance(hook, (TakeOneMember, RepeatAnswer)) for hook in hooks)


def find_repeated(
    net: nn.Module, branch: Branch, order: Sequence[str], own: Mapping[str, Any], carriers: Mapping[str, tuple[bool, ...]]
) -> frozenset[str]:
    """The plain layers that run between the branch and the first of the members' `own` layers, on one tensor with all rows.

    `order` has the modules in the order of their calls, `carriers` says which tensors among their arguments carry the batch.
    """
    if branch.kind not in ("module", "input"):
        return frozenset()
    after = list(order[order.index(branch.name) if branch.kind == "module" else 0 :])
    first = next((place for place, name in enumerate(after) if name in own), 0)
    modules = dict(net.named_modules())
    return frozenset(name for name in after[:first] if isinstance(modules[name], AFFINE) and carriers.get(name) == (True,))


def attach_repeats(net: nn.Module, names: frozenset[str]) -> None:
    """Put the hooks on these layers. They do nothing in passes with another plan, so they may stay."""
    for name in sorted(names):
        module = net.get_submodule(name)
        if not any(isinstance(hook, TakeOneMember) and hook.name == name for hook in module._forward_pre_hooks.values()):
            module.register_forward_pre_hook(TakeOneMember(name))
            module.register_forward_hook(RepeatAnswer(name))


def detach_repeats(net: nn.Module) -> None:
    """Take all such hooks off."""
    for module in net.modules():
        for hooks, kind in ((module._forward_pre_hooks, TakeOneMember), (module._forward_hooks, RepeatAnswer)):
            for key in [key for key, hook in hooks.items() if isinstance(hook, kind)]:
                del hooks[key]
