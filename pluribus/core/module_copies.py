"""Deep copies of networks, without taking apart what is empty.

A module has a dozen tables for hooks, which are nearly always empty. `copy.deepcopy` takes each of them apart and builds it
anew, which is half of the time of a copy. Here its memo already knows new empty tables.
"""

import copy
from collections import OrderedDict
from typing import Any

from torch import nn

HOOK_TABLES = (
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks"),
)
TABLES = (
    *HOOK_TABLES,
    *("_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    "_non_persistent_buffers_set",
)


def copy_module(net: nn.Module, memo: dict[int, Any] | None = None) -> nn.Module:
    """What `copy.deepcopy(net, memo)` returns, in about half the time.

    >>> layer = nn.Linear(3, 2)
    >>> twin = copy_module(layer)
    >>> twin.weight is layer.weight, bool((twin.weight == layer.weight).all()), twin._forward_hooks is layer._forward_hooks
    (False, True, False)
    """
    memo = {} if memo is None else memo
    for module in net.modules():
        own = vars(module)
        for name in TABLES:
            table: Any = own.get(name)
            if type(table) in (OrderedDict, dict, set) and not table:
                memo.setdefault(id(table), type(table)())
    return copy.deepcopy(net, memo)
