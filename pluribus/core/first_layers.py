"""Which layer each of several inputs of a network reaches first."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from . import pytrees
from .branching import dry_run
from .surgery import Subject, copy_with


def find_first_layers(subject: Subject, layers: Mapping[str, nn.Module]) -> list[str]:
    """The first of these layers that each input tensor of the example reaches, in the order in which they run.

    Every input is changed in turn: what enters a layer that depends on it changes, too. An input that does not vary between
    rows, as a mask of ones, is left out.
    """
    trial = copy_with(subject.net, {})
    leaves = list(pytrees.iterate_tensors(subject.example))
    before = record_inputs(trial, layers, subject.example)
    found = set()
    for place, leaf in enumerate(leaves):
        changed = change_rows(leaf)
        if torch.equal(changed, leaf):
            continue
        new = iter([*leaves[:place], changed, *leaves[place + 1 :]])
        after = record_inputs(trial, layers, pytrees.map_tensors(lambda _, new=new: next(new), subject.example))
        reached = [name for name in before if name in after and not torch.equal(before[name], after[name])]
        found |= set(reached[:1])
    return [name for name in before if name in found]


def change_rows(leaf: Tensor) -> Tensor:
    """Other numbers of the same kind: those of the next row; of one row alone, whole numbers stay."""
    if leaf.is_floating_point():
        return leaf + torch.randn(leaf.shape, generator=torch.Generator().manual_seed(0)).to(leaf)
    return leaf.roll(1, 0)


def record_inputs(trial: nn.Module, layers: Mapping[str, nn.Module], example: Any) -> dict[str, Tensor]:
    """What enters each of these layers at its first call, in the order in which they run."""
    found: dict[str, Tensor] = {}

    def record(name: str) -> Any:
        def hook(_: nn.Module, args: Any) -> None:
            if name not in found and args and isinstance(args[0], Tensor):
                found[name] = args[0].detach().clone()

        return hook

    hooks = [trial.get_submodule(name).register_forward_pre_hook(record(name)) for name in layers]
    with dry_run(trial):
        pytrees.call_network(trial, pytrees.copy_tensors(example))
    for hook in hooks:
        hook.remove()
    return found
