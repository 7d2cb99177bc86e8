"""Modules that read their weights themselves, as ordinary layers that methods can convert, and as themselves again.

nn.MultiheadAttention, nn.LSTM, nn.GRU, nn.RNN and the `Conv1D` of transformers compute with weights that no linear layer holds.
Before a method converts a network, such a module is replaced by one that gives the same answers and consists of linear layers.
Afterwards, and whenever a member becomes plain, what the method left alone is put together again: the user's own module, with
its fast kernels and the names of its parameters.
"""

import copy
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.nn.utils import parametrize

from .affine import copy_to_meta
from .attention import OpenAttention, find_attention_obstacle, make_linear
from .left_layers import measure_share
from .module_copies import HOOK_TABLES
from .recurrent import OpenRecurrent
from .surgery import Subject, copy_with, settle_fast_path

if TYPE_CHECKING:
    from .ensemble import Ensemble
    from .spec import Spec

KINDS = ("attention", "recurrent", "conv1d")
"""What can be taken apart; a method's `takes_apart` names those that it converts."""
RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)


class OpenConv1D(nn.Linear):
    """The `Conv1D` of transformers, a linear layer that keeps its weight transposed, `[I, O]`."""

    original: nn.Module

    def put_together(self) -> nn.Module | None:
        """The layer that it was."""
        whole: Any = copy.deepcopy(self.original)
        whole.weight = nn.Parameter(self.weight.detach().T.contiguous(), self.weight.requires_grad)
        whole.bias = self.bias
        whole.nx, whole.nf = whole.weight.shape
        return whole


OPENED = (OpenAttention, OpenRecurrent, OpenConv1D)


def take_apart(net: nn.Module, kinds: tuple[str, ...]) -> nn.Module:
    """A copy of the network in which modules of these kinds consist of linear layers; the network itself if it has none.

    A module stays whole if its weights are tied to others or computed by a parametrization.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.GRU(8, 3))
    >>> opened = take_apart(net, KINDS)
    >>> [name for name, module in opened.named_modules() if isinstance(module, nn.Linear)]
    ['0', '1.ih_l0', '1.hh_l0']
    >>> put_together(opened)[1]
    GRU(8, 3)
    """
    replaced: dict[int, nn.Module] = {}
    for module in net.modules():
        kind = find_kind(module)
        if kind in kinds and not find_obstacle(module, net):
            replaced[id(module)] = open_module(module, kind)
    return copy_with(net, replaced) if replaced else net


def convert_opened(spec: "Spec", subject: Subject) -> "Ensemble":
    """The ensemble of a network that was taken apart. What the method left alone is put together again.

    Warns if most of the weights are in layers that the method could not convert, unless the caller chose the layers.
    """
    converted = spec.convert(subject)
    share = measure_share(subject.modules, subject.left)
    chosen = any(getattr(spec, option, None) is not None for option in ("include", "exclude"))
    if share > 0.5 and "attention" in spec.get_takes_apart() and not chosen:  # a method that converts whatever it can
        names = ", ".join([name or "the network itself" for name in subject.left][:4]) + (" …" if len(subject.left) > 4 else "")
        converted.conversion.remark(
            f"{share:.0%} of the weights are in layers that {type(spec).__name__} left alone ({names}): describe() says why"
        )
    put_together(converted)
    return converted


def find_kind(module: nn.Module) -> str:
    """Which of the KINDS a module is; "" if it is none. A subclass may do something else, and is none."""
    if type(module) is nn.MultiheadAttention:
        return "attention"
    if type(module) in RECURRENT:
        return "recurrent"
    named = type(module).__module__, type(module).__name__
    return "conv1d" if named == ("transformers.pytorch_utils", "Conv1D") else ""


def find_obstacle(module: nn.Module, net: nn.Module) -> str:
    """Why a module of a known kind must stay whole, if it must."""
    if any(parametrize.is_parametrized(part) for part in module.modules()):
        return "its weight is computed by a parametrization"
    if isinstance(module, nn.RNNBase) and any(name not in module._parameters for name in module._flat_weights_names):
        return "its weight is computed by a parametrization"
    own, inside = {id(p) for p in module.parameters()}, set(module.modules())
    for name, other in net.named_modules():
        if other not in inside and any(id(p) in own for p in other._parameters.values() if p is not None):
            return f"its weights are tied to {name}"
    return find_attention_obstacle(module) if isinstance(module, nn.MultiheadAttention) else ""


def open_module(module: Any, kind: str) -> nn.Module:
    """The module as linear layers, in the same mode and with its hooks."""
    opened: nn.Module
    if kind == "attention":
        opened = OpenAttention(module)
    elif kind == "recurrent":
        opened = OpenRecurrent(module)
    else:
        opened = make_linear(module.weight.T, module.bias)
        opened.__class__ = OpenConv1D
        opened.__dict__["original"] = copy_to_meta(module)
        opened.__dict__ |= {"nf": module.nf, "nx": module.nx}
    opened.train(module.training)
    return carry_tables(module, opened)


def put_together(net: nn.Module) -> nn.Module:
    """Make of every module that was taken apart, and of which no layer was converted, what it was. This changes `net`.

    The modules stay the same objects, so that whoever holds one, a list of the network's own, say, holds it still.
    """
    changed = False
    for module in list(net.modules()):
        whole = module.put_together() if isinstance(module, OPENED) else None
        if whole is None:
            continue
        whole.train(module.training)
        carry_tables(module, whole)
        state = vars(whole)
        module.__class__ = type(whole)
        module.__dict__.clear()
        module.__dict__.update(state)
        changed = True
    if changed:
        settle_fast_path(net)
    return net


def carry_tables(old: nn.Module, new: nn.Module) -> nn.Module:
    """Let `new` run the hooks of `old`."""
    for name in HOOK_TABLES:
        getattr(new, name).update(getattr(old, name))
    new._is_full_backward_hook = old._is_full_backward_hook
    return new
