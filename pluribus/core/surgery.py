"""Layer surgery: choose layers of a network, and copy the network with others in their place.

The copy is one deep copy whose memo already knows the new layers. So nested modules, modules used twice, and modules
kept in plain Python lists are all reached, shared ones stay shared, and the caller's network is only read.
"""

import copy
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from . import pytrees
from .answer import ClassAxis, Task
from .branching import CallRecorder, dry_run
from .errors import ConversionError
from .left_layers import computes_as_linear, find_other_weights, find_unused
from .module_copies import HOOK_TABLES, copy_module

if TYPE_CHECKING:
    from .members import Converted

Pattern = str | type[nn.Module]
Patterns = Pattern | Sequence[Pattern] | None


class Subject:
    """The caller's network, to be read and copied."""

    def __init__(
        self,
        net: nn.Module,
        example: Any = None,
        task: Task = "classification",
        output: int | str | None = None,
        order: list[str] | None = None,
        class_axis: ClassAxis = 1,
        batch_axis: int | None = 0,
    ) -> None:
        for name, parameter in net.named_parameters():
            if isinstance(parameter, nn.UninitializedParameter):
                raise ConversionError(f"{name} has no shape yet: run the network once on a batch before converting it")
        self.net = net
        self.example = example
        self.task: Task = task
        self.output = output
        self.class_axis: ClassAxis = class_axis
        self.batch_axis = batch_axis
        self.modules = dict(net.named_modules())
        self.left: dict[str, str] = {}  # layer -> why it was left as it is
        self.unused: frozenset[str] = frozenset()  # layers that have no part in the output that is meant
        self.ran = order  # module names as they run on the example, once that is known

    def replace_network(self, net: nn.Module) -> "Subject":
        """Another network of the same structure, to be converted in the same way."""
        return Subject(net, self.example, self.task, self.output, self.ran, self.class_axis, self.batch_axis)

    def require_rows(self, why: str) -> None:
        """Raise ConversionError if what the network takes has no rows that may be dealt."""
        if self.batch_axis is None:
            raise ConversionError(
                f"{why}, and with batch_axis=None the network takes its input as a whole: choose another method"
            )

    def order(self) -> list[str]:
        """Module names in the order in which they run on the example; without one, as they were registered.

        Layers that have no part in the output that is meant are not among them.
        """
        if self.ran is None and self.example is not None:
            trial = copy_with(self.net, {})
            with dry_run(trial), CallRecorder(trial) as heard:
                pytrees.call_network(trial, self.example)
            if self.output is not None:
                rows = self.example if self.batch_axis is None else pytrees.take_rows(self.example, 2)
                self.unused = find_unused(trial, rows, self.output)
            self.ran = [name for name in dict.fromkeys(heard.order) if name and name not in self.unused]
        return [name for name in self.modules if name] if self.ran is None else self.ran

    def layers(self, types: tuple[type[nn.Module], ...]) -> dict[str, nn.Module]:
        """The layers of these types that can be replaced, in order; the reasons for the others go to `left`."""
        found = {}
        names = self.order() or list(self.modules)  # a network that is itself one layer has only the name ""
        for name in names:
            module = self.modules[name]
            if isinstance(module, nn.MultiheadAttention) and nn.Linear in types:
                self.left[name] = "nn.MultiheadAttention reads its projections' weights directly: left whole"
            if not isinstance(module, types):
                continue
            reason = self._obstacle(name, module, types)
            if reason:
                self.left[name] = reason
            else:
                found[name] = module
        for name, module in self.modules.items():
            if self.ran is not None and name and name not in self.ran and isinstance(module, types):
                unused = f"it has no part in the output {self.output!r}"
                self.left[name] = unused if name in self.unused else "it did not run on the example"
        for name in [n for n in self.left if self._within_attention(n)]:
            del self.left[name]  # said once, for the attention module
        return found

    def select(
        self,
        types: tuple[type[nn.Module], ...],
        include: Patterns = None,
        exclude: Patterns = None,
        default: Callable[[dict[str, nn.Module]], Iterable[str]] | None = None,
        argument: str = "include",
    ) -> dict[str, nn.Module]:
        """The layers to convert. Without `include`, those that `default` picks, or all."""
        candidates = self.layers(types)
        if argument == "include" and nn.Linear in types:
            self.left |= {name: why for name, why in find_other_weights(self.modules, types).items() if name not in self.left}
        kinds = ", ".join(t.__name__ for t in types)
        if not candidates:
            raise ConversionError(
                f"nothing to convert: {type(self.net).__name__} has no layer of the types {kinds} that can be replaced"
                + "".join(f"\n  {name}: {reason}" for name, reason in self.left.items())
            )
        if include is None:
            chosen = list(default(candidates)) if default else list(candidates)
        else:
            chosen = self._match(include, argument, candidates)
            if not chosen:
                raise ConversionError(f"{argument}= names no layer. It could name:\n{_list_layers(candidates)}")
        if exclude is not None:
            out = set(self._match(exclude, "exclude", candidates))
            chosen = [name for name in chosen if name not in out]
        if not chosen:
            raise ConversionError(f"exclude= left nothing to convert. It could have been:\n{_list_layers(candidates)}")
        return {name: candidates[name] for name in chosen}

    def one(self, types: tuple[type[nn.Module], ...], named: str | None, position: int, argument: str) -> str:
        """The layer that is named, or else the one in this position, 0 or -1."""
        found = list(self.select(types, named, default=lambda layers: [list(layers)[position]], argument=argument))
        if len(found) > 1:
            raise ConversionError(f"{argument} must name one layer, and it names {', '.join(found)}")
        return found[0]

    def _match(self, patterns: Patterns, argument: str, candidates: dict[str, nn.Module]) -> list[str]:
        found: list[str] = []
        for pattern in list_patterns(patterns):
            hits = [name for name, module in candidates.items() if matches(pattern, name, module)]
            if not hits:
                for name, reason in self.left.items():
                    if matches(pattern, name, self.modules[name]):
                        raise ConversionError(f"{argument}={pattern!r} names {name}, which cannot be converted: {reason}")
                close = difflib.get_close_matches(str(pattern), candidates, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ConversionError(
                    f"{argument}={pattern!r} matched no layer.{hint} It could have matched:\n{_list_layers(candidates)}"
                )
            found += hits
        return [name for name in candidates if name in set(found)]

    def _obstacle(self, name: str, module: nn.Module, types: tuple[type[nn.Module], ...]) -> str:
        if self._within_attention(name):
            return "inside nn.MultiheadAttention"
        if any(hasattr(self.modules[ancestor], "executor") for ancestor in list_ancestors(name)):
            return "inside an ensemble that is part of the network, whose members are its own"
        if parametrize.is_parametrized(module) or ("weight" in vars(module) and "weight" not in module._parameters):
            return "its weight is computed by a parametrization: remove that first, or leave it"
        is_own = not any(type(module).forward is t.forward for t in types if isinstance(module, t))
        if is_own and not (isinstance(module, nn.Linear) and computes_as_linear(module)):
            return f"{type(module).__name__} has a forward of its own"
        for own, parameter in module.named_parameters(recurse=False):
            other = next((o for o in self._owners(parameter) if self.modules[o] is not module), None)
            if other is not None:
                return f"its {own} is tied to {other}: a copy of its own would untie them"
        return ""

    def _owners(self, parameter: nn.Parameter) -> list[str]:
        return [n for n, m in self.modules.items() if any(p is parameter for p in m._parameters.values())]

    def _within_attention(self, name: str) -> bool:
        return any(isinstance(self.modules[a], nn.MultiheadAttention) for a in list_ancestors(name))

    def tied_across(self, inside: Iterable[str]) -> str | None:
        """A sentence about a parameter that is used both inside and outside these modules, if there is one."""
        inside = list(inside)
        for name, module in self.modules.items():
            if not any(is_within(name, part) for part in inside):
                continue
            for own, parameter in module.named_parameters(recurse=False):
                for other in self._owners(parameter):
                    if not any(is_within(other, part) for part in inside):
                        return f"{name}.{own} is tied to {other}"
        return None


def copy_with(net: nn.Module, replacements: Mapping[int, Any], memo: dict[int, Any] | None = None) -> nn.Module:
    """A deep copy of `net` in which the module with id `key` is `replacements[key]`, wherever it is used.

    A `memo` that is passed in knows afterwards what became of every part.
    """
    memo = {} if memo is None else memo
    memo.update(replacements)
    try:
        copy_ = copy_module(net, memo)
    except RuntimeError as error:
        raise ConversionError(
            f"{type(net).__name__} cannot be copied ({error}): it keeps a tensor that is computed from its parameters; "
            "detach it, or compute it in forward"
        ) from error
    settle_fast_path(copy_)
    return copy_


def carry_hooks(old: nn.Module, new: nn.Module, memo: dict[int, Any] | None = None) -> nn.Module:
    """Let `new` run the hooks that a user put on `old`; with the `memo` of a copy, those of its parts are the copy's."""
    for name in HOOK_TABLES:
        getattr(new, name).update(copy.deepcopy(getattr(old, name), memo))
    new._is_full_backward_hook = old._is_full_backward_hook
    return new


def clear_hooks(module: nn.Module) -> None:
    """Take all hooks off."""
    for name in HOOK_TABLES:
        getattr(module, name).clear()


def carry_hooks_to_converted(old: nn.Module, new: "Converted", memo: dict[int, Any]) -> None:
    """Let the converted layer run the hooks of the layer that it replaces.

    Where the old layer lives on inside the new one, its hooks are there already.
    """
    if not new.holds_original:
        carry_hooks(old, new, memo)
    affine = vars(new).get("affine")
    if affine is not None and affine.transposed is not None:
        new.register_forward_pre_hook(affine.take_output_size, with_kwargs=True)


def settle_fast_path(net: nn.Module) -> None:
    """Keep nn.TransformerEncoderLayer from its fused kernel where it would read a replaced child's weights past it.

    The layer asks `activation_relu_or_gelu` first, before it touches any weight.
    """
    touched = False
    for module in net.modules():
        if isinstance(module, nn.TransformerEncoderLayer):
            if _is_untouched(module):
                gelu = module.activation is F.gelu or isinstance(module.activation, nn.GELU)
                relu = module.activation is F.relu or isinstance(module.activation, nn.ReLU)
                module.activation_relu_or_gelu = 1 if relu else 2 if gelu else 0
            else:
                module.activation_relu_or_gelu = 0
                touched = True
                if not isinstance(module.self_attn, nn.MultiheadAttention):  # whose bias it asks for before that
                    module.self_attn.in_proj_bias = None
    for module in net.modules():
        whole = isinstance(module, nn.TransformerEncoder) and all(
            isinstance(each, nn.TransformerEncoderLayer) for each in module.layers
        )
        if isinstance(module, nn.TransformerEncoder) and (touched or not whole):  # members cannot share a nested tensor
            module.enable_nested_tensor = module.use_nested_tensor = False


def _is_untouched(layer: nn.TransformerEncoderLayer) -> bool:
    kinds = {"linear1": nn.Linear, "linear2": nn.Linear, "norm1": nn.LayerNorm, "norm2": nn.LayerNorm}
    kinds |= {"dropout": nn.Dropout, "dropout1": nn.Dropout, "dropout2": nn.Dropout, "self_attn": nn.MultiheadAttention}
    return all(type(getattr(layer, name, None)) is kind for name, kind in kinds.items())


def list_ancestors(name: str) -> list[str]:
    """The modules around `name`, the innermost first; the network itself is not among them.

    >>> list_ancestors("body.0.conv")
    ['body.0', 'body']
    """
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1)]


def matches(pattern: Pattern, name: str, module: nn.Module) -> bool:
    """Whether a name, a glob, a block's name or a layer type means this layer.

    A type may be written `"type:torch.nn.modules.linear.Linear"`: that is how a saved spec keeps it.

    >>> matches("body", "body.0.conv", nn.ReLU()), matches("*.conv", "body.0.conv", nn.ReLU())
    (True, True)
    >>> matches(nn.Linear, "fc", nn.Linear(2, 2)), matches("fc1", "fc", nn.Linear(2, 2))
    (True, False)
    """
    if isinstance(pattern, type):
        return isinstance(module, pattern)
    if pattern.startswith("type:"):
        return any(pattern == format_type_pattern(kind) for kind in type(module).__mro__)
    return name == pattern or fnmatchcase(name, pattern) or is_within(name, pattern)


def format_type_pattern(kind: type) -> str:
    return f"type:{kind.__module__}.{kind.__qualname__}"


def list_patterns(patterns: Patterns) -> list[Pattern]:
    found: list[Any] = list(patterns) if isinstance(patterns, (tuple, list)) else [] if patterns is None else [patterns]
    for pattern in found:
        if not isinstance(pattern, (str, type)):
            raise TypeError(f"layers are chosen by names, patterns or types, got {pattern!r}")
    return found


def is_within(name: str, block: str) -> bool:
    return name == block or name.startswith(block + ".") or block == ""


def _list_layers(candidates: dict[str, nn.Module]) -> str:
    return "\n".join(f"  {name or '(the network itself)'}: {module}" for name, module in candidates.items())


def describe_structure(net: nn.Module) -> list[str]:
    """The network in words, module by module: what `load` compares."""
    return [f"{name or '.'}: {type(m).__name__}({m.extra_repr()})" for name, m in net.named_modules()]
