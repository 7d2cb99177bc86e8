"""Training and evaluation mode, module by module: a frozen BatchNorm in a training network stays frozen."""

import copy
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)
OWN_ATTRIBUTES = frozenset(vars(nn.Module()))
"""What every module has: none of it refers to other modules, but `_modules`."""


def copy_for_evaluation(module: Module, own_tables: bool = False) -> Module:
    """A copy of the module tree in evaluation mode that shares every parameter, buffer and hook with the original.

    A prediction runs on such a copy, so it never changes the mode of a network that another thread trains or predicts with. It
    costs about a microsecond a module. What a network writes into its own attributes during the pass stays in the copy.
    With `own_tables` the copy has its own tables of hooks and parameters, which may then be changed.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    >>> twin = copy_for_evaluation(net)
    >>> twin.training, net.training, twin[0].weight is net[0].weight
    (False, True, True)
    """
    twins: dict[nn.Module, nn.Module] = {}
    twin = _copy(module, twins, own_tables)
    for each in twins.values():
        state = vars(each)
        for name in [name for name in state if name not in OWN_ATTRIBUTES]:
            value = state[name]
            if type(value) in (list, tuple, dict, types.MethodType) or isinstance(value, nn.Module):
                state[name] = _redirect(value, twins)
    return cast(Module, twin)


def _copy(module: nn.Module, twins: dict[nn.Module, nn.Module], own_tables: bool) -> nn.Module:
    if module in twins:
        return twins[module]
    if isinstance(module, torch.jit.ScriptModule):  # its state is not in Python
        twins[module] = copy.deepcopy(module).eval() if module.training else module
        return twins[module]
    twin = twins[module] = object.__new__(type(module))
    state = vars(twin)
    state.update(vars(module))
    state["training"] = False
    if module._modules:
        children = module._modules.items()
        state["_modules"] = {name: None if child is None else _copy(child, twins, own_tables) for name, child in children}
    if module.training and "_computed" in state:  # what a converted layer keeps while its weights do not change
        state["_computed"] = {}
    if own_tables:
        for name in ("_parameters", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"):
            state[name] = state[name].copy()
    return twin


def _redirect(value: Any, twins: dict[nn.Module, nn.Module]) -> Any:
    """The same value with the copies in place of the modules that were copied: networks also keep modules in plain lists."""
    if isinstance(value, nn.Module):
        return twins.get(value, value)
    if type(value) is types.MethodType:
        owner = value.__self__
        return types.MethodType(value.__func__, twins[owner]) if isinstance(owner, nn.Module) and owner in twins else value
    if type(value) in (list, tuple):
        found = [_redirect(item, twins) for item in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else type(value)(found)
    if type(value) is dict:
        pairs = {key: _redirect(item, twins) for key, item in value.items()}
        return value if all(pairs[key] is value[key] for key in value) else pairs
    return value


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside the block; afterwards every part is in the mode it was in."""
    with restore_modes(module):
        module.eval()
        yield


@contextmanager
def training_mode(module: nn.Module) -> Iterator[None]:
    """Training mode inside the block, if it is not on already; afterwards every part is in the mode it was in."""
    with restore_modes(module):
        if not module.training:
            module.train()
        yield


@contextmanager
def restore_modes(module: nn.Module) -> Iterator[None]:
    """Afterwards every part of the module is in the mode it was in."""
    modes = {part: part.training for part in module.modules()}
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode
