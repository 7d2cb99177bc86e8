"""Training and evaluation mode, module by module: a frozen BatchNorm in a training network stays frozen."""

import collections
import copy
import functools
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import nn

Module = TypeVar("Module", bound=nn.Module)
OWN_ATTRIBUTES = frozenset(vars(nn.Module()))
"""What every module has: none of it refers to other modules, but `_modules`."""
REFERRING = (nn.Module, list, tuple, dict, collections.deque, types.MethodType, functools.partial)
"""Kinds of attributes that may refer to other modules."""
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
OWN_TABLES = (
    *("_parameters", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
)


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
        has_lists |= isinstance(before, (list, dict, collections.deque)) and state[name] is not before
    return cast(Module, twin), has_lists


def _copy(
    module: nn.Module, twins: dict[nn.Module, nn.Module], references: list[tuple[dict[str, Any], str]], own_tables: bool
) -> nn.Module:
    if module in twins:
        return twins[module]
    if isinstance(module, torch.jit.ScriptModule):  # its state is not in Python
        twins[module] = copy.deepcopy(module).eval() if module.training else module
        return twins[module]
    if "_orig_mod" in module.__dict__.get("_modules", {}):  # compiled: the compiled call would run the original
        twins[module] = _copy(module._modules["_orig_mod"], twins, references, own_tables)  # type: ignore[arg-type]
        return twins[module]
    twin = twins[module] = object.__new__(type(module))
    state = twin.__dict__
    state.update(module.__dict__)
    state["_modules"] = {
        name: None if child is None else _copy(child, twins, references, own_tables)
        for name, child in state["_modules"].items()
    }
    if state["training"]:
        state["training"] = False
        if "_computed" in state:  # what a converted layer keeps while its weights do not change
            state["_computed"] = {}
    if state.get("_compiled_call_impl") is not None:
        state["_compiled_call_impl"] = None
    for name in state.keys() - OWN_ATTRIBUTES:
        if isinstance(state[name], REFERRING):
            references.append((state, name))
    for name in HOOK_TABLES:
        if state[name]:
            references.append((state, name))
    if own_tables:
        for name in OWN_TABLES:
            state[name] = state[name].copy()
    return twin


def _redirect(value: Any, twins: dict[nn.Module, nn.Module]) -> Any:
    """The same value with the copies in place of the modules that were copied: networks also keep modules in plain lists."""
    if isinstance(value, nn.Module):
        return twins.get(value, value)
    if isinstance(value, types.MethodType):
        owner = value.__self__
        return types.MethodType(value.__func__, twins[owner]) if isinstance(owner, nn.Module) and owner in twins else value
    if isinstance(value, functools.partial):
        found = _redirect((value.func, *value.args), twins)
        named = _redirect(value.keywords, twins)
        same = all(a is b for a, b in zip(found, (value.func, *value.args), strict=True)) and named is value.keywords
        return value if same else functools.partial(*found, **named)
    if isinstance(value, (list, tuple, collections.deque)):
        found = [_redirect(item, twins) for item in value]
        if all(a is b for a, b in zip(found, value, strict=True)):
            return value
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    if isinstance(value, dict):
        pairs = {key: _redirect(item, twins) for key, item in value.items()}
        if all(pairs[key] is value[key] for key in value):
            return value
        changed = copy.copy(value)
        changed.update(pairs)
        return changed
    return value


Snapshot = tuple[type, tuple[Any, ...], tuple[Any, ...]]
"""A module's class, the values of its attributes, and its children, whose dictionary stays the same when one is replaced."""


class _Kept(NamedTuple):
    root: Snapshot
    parts: list[tuple[nn.Module, Snapshot]]
    copy: nn.Module


# Not an attribute of the module: a module that holds what it was copied to would live until the garbage collector finds it.
_copies: "weakref.WeakKeyDictionary[nn.Module, _Kept]" = weakref.WeakKeyDictionary()


def get_evaluation_copy(module: Module) -> Module:
    """`copy_for_evaluation(module)`, kept for as long as nothing in the module tree changes.

    The check compares the attributes of every module by identity, which is several times faster than a new copy. A change
    inside an attribute needs no check: the copy shares the attribute itself.
    """
    kept = _copies.get(module)
    if kept is not None and _is_unchanged(module, kept):
        return cast(Module, kept.copy)
    parts = [(part, _take_snapshot(part)) for part in module.modules() if part is not module]
    kept = _Kept(_take_snapshot(module), parts, (found := _copy_tree(module))[0])
    # In training mode, weights that a layer has computed must not outlive one prediction.
    if found[1] or module.training or any(part.training for part, _ in parts):
        _copies.pop(module, None)
    else:
        _copies[module] = kept
    return cast(Module, kept.copy)


def _take_snapshot(module: nn.Module) -> Snapshot:
    state = module.__dict__
    return type(module), tuple(state.values()), tuple(state["_modules"].values())


def _is_unchanged(module: nn.Module, kept: _Kept) -> bool:
    try:
        if _take_snapshot(module) != kept.root:  # tuples compare their elements by identity first
            return False
        for part, snapshot in kept.parts:
            if _take_snapshot(part) != snapshot:
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
