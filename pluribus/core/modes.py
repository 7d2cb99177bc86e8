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
CONTAINERS = frozenset({list, tuple, dict, types.MethodType})


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
    return _copy_tree(module, own_tables)[0]


def _copy_tree(module: Module, own_tables: bool = False) -> tuple[Module, bool]:
    """The copy, and whether a list or dictionary with modules in it had to be copied: changes in it would not be seen."""
    twins: dict[nn.Module, nn.Module] = {}
    references: list[tuple[dict[str, Any], str]] = []  # attributes that may refer to other modules
    twin, has_lists = _copy(module, twins, references, own_tables), False
    for state, name in references:
        before, state[name] = state[name], _redirect(state[name], twins)
        has_lists |= type(before) in (list, dict) and state[name] is not before
    return cast(Module, twin), has_lists


def _copy(
    module: nn.Module, twins: dict[nn.Module, nn.Module], references: list[tuple[dict[str, Any], str]], own_tables: bool
) -> nn.Module:
    if module in twins:
        return twins[module]
    if isinstance(module, torch.jit.ScriptModule):  # its state is not in Python
        twins[module] = copy.deepcopy(module).eval() if module.training else module
        return twins[module]
    twin = twins[module] = object.__new__(type(module))
    state = twin.__dict__
    state.update(module.__dict__)
    children = state["_modules"]
    if children:
        state["_modules"] = {
            name: None if child is None else _copy(child, twins, references, own_tables) for name, child in children.items()
        }
    if state["training"]:
        state["training"] = False
        if "_computed" in state:  # what a converted layer keeps while its weights do not change
            state["_computed"] = {}
    for name in state.keys() - OWN_ATTRIBUTES:
        if type(state[name]) in CONTAINERS or isinstance(state[name], nn.Module):
            references.append((state, name))
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


class EvaluationCache:
    """Keeps the last `copy_for_evaluation` of a module for as long as nothing in the module tree changes.

    The check compares the attributes of every module by identity, which is several times faster than a new copy. A change inside
    an attribute needs no check: the copy shares the attribute itself.
    """

    def __init__(self) -> None:
        self._kept: tuple[list[Snapshot], nn.Module] | None = None

    def get(self, module: Module) -> Module:
        """The copy of `module` in evaluation mode."""
        kept = self._kept
        if kept is None or not _is_unchanged(module, kept[0]):
            snapshots = [_take_snapshot(part) for part in module.modules()]
            twin, has_lists = _copy_tree(module)
            kept = snapshots, twin
            # In training mode, weights that a layer has computed must not outlive one prediction.
            self._kept = None if module.training or has_lists else kept
        return cast(Module, kept[1])


Snapshot = tuple[dict[str, Any], tuple[Any, ...], tuple[Any, ...]]
"""A module's attributes; their values; and its children, whose dictionary stays the same object when one is replaced."""


def _take_snapshot(module: nn.Module) -> Snapshot:
    state = vars(module)
    return state, tuple(state.values()), tuple(state["_modules"].values())


def _is_unchanged(module: nn.Module, snapshots: list[Snapshot]) -> bool:
    if vars(module) is not snapshots[0][0]:
        return False
    try:
        for state, values, children in snapshots:  # tuples compare their elements by identity first
            if tuple(state.values()) != values or (children and tuple(state["_modules"].values()) != children):
                return False
    except (RuntimeError, ValueError, TypeError):  # a tensor or array was replaced: it has no single answer to `==`
        return False
    return True


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
