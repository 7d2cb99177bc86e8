"""How M members travel through one network.

A batch is either *shared*, `[B, …]`, the same rows for every member, or *branched*, `[M·B, …]`, member-major: first all
rows of member 0, then all of member 1. Layers that do not differ between members see a longer batch and notice nothing. A
`MemberLayer` splits the first axis into `[M, B]`, answers for every member, and joins it again.

What a layer must know of the call (M, one member or all, shared or dealt rows) it reads from the `Pass` of its thread.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from . import noise, pytrees
from .affine import copy_to_meta
from .errors import Unsupported
from .passes import UNKNOWN, LayerFacts, Pass, call_in_pass, get_pass
from .shares import Share
from .weight_stand_ins import make_stand_in


class RowsChangedError(RuntimeError):
    """A member layer got another number of rows than the plan expects: a new search is needed."""


class RecomputationError(RuntimeError):
    """Members were to run one after the other, and gradient checkpointing will compute them again in the backward pass."""


class Converted(nn.Module):
    """A layer that surgery put into a network.

    A network may still read what the old layer was like (`in_features`, say, or `weight.dtype`), but not the numbers of its
    weight or bias: a result computed from them would silently bypass the members. See `weight_stand_ins`.
    """

    undecayed: tuple[str, ...] = ()
    """Names of own parameters that weight decay must leave alone."""
    matrices: ClassVar[Mapping[str, int]] = {}
    """Names of own weights `[…, out, in, …]`, each with the number of axes before those of a layer's weight."""
    holds_original = False
    """Whether the replaced layer, with its hooks, lives on inside this one."""
    place = ""
    """The layer's name in the network."""

    def __init__(self) -> None:
        super().__init__()
        self._computed: dict[str, tuple[Any, Tensor]] = {}
        self._remembered: Pass | None = None  # what gradient checkpointing will compute again

    def compute_once(self, name: str, compute: Callable[[], Tensor], *sources: Tensor) -> Tensor:
        """`compute()`, a function of the `sources`, computed again only when one of them has changed.

        This holds in evaluation without gradients; there a weight that many are averaged into costs nothing from the second
        batch on.
        """
        if self.training or torch.is_grad_enabled() or torch.compiler.is_compiling() or any(s.is_inference() for s in sources):
            return compute()
        # Torch counts what is written into a tensor. Writing into its .data is not counted, so a change of mode forgets all.
        now = [(id(source), source._version, source.data_ptr(), source.dtype) for source in sources]
        known = self._computed.get(name)
        if known is None or known[0] != now:
            known = self._computed[name] = (now, compute())
        return known[1]

    def train(self, mode: bool = True) -> Any:
        if mode != self.training:
            self._computed.clear()
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_computed": {}, "_remembered": None}  # a copy, or a file, does not need them

    def __getattr__(self, name: str) -> Any:
        parameters = self.__dict__.get("_parameters", {})
        if name in parameters:  # each pass asks for them: the way below takes twice as long
            return parameters[name]
        try:
            return super().__getattr__(name)
        except AttributeError:
            known = self.__dict__.get("affine") or self.__dict__.get("likeness")
            if known is None or not hasattr(known.template, name):
                raise
        value = getattr(known.template, name)
        if hasattr(known.template, "executor") and callable(value):  # it would run without numbers
            raise AttributeError(
                f"{self.place} is an ensemble of which every member has its own: the network must call it, and not its {name}"
            )
        if isinstance(value, Tensor):
            own = next((p for p in self.parameters() if p.is_floating_point()), None)
            return make_stand_in(self.place, name, value, own)
        return value

    def recall_pass(self) -> Pass | None:
        """The pass that runs in this thread; in the backward pass, the one that gradient checkpointing computes again."""
        current = get_pass()
        if current is None:
            return self._remembered if is_in_backward() else None
        if self.training and not torch.compiler.is_compiling() and is_checkpointing():
            self._remembered = current
        return current

    def to_plain(self, index: int) -> nn.Module:
        """The layer of member `index` as a plain module; `Unsupported` where there is none."""
        raise TypeError(f"{type(self).__name__} must define to_plain")

    def to_noiseless(self, index: int) -> nn.Module:
        """The same without the noise about which a member's draws scatter, in the class of the layer that was replaced."""
        return self.to_plain(index)


class MemberLayer(Converted):
    """A layer in which members differ. Subclasses write `respond` and `to_plain`."""

    def respond(self, x: Tensor) -> Tensor:
        """`[1 or M, B, …]` → `[M, B, …]`; a first axis of one is a batch that all members share."""
        raise TypeError(f"{type(self).__name__} must define respond")

    def freeze(self, count: int) -> None:
        """Fix one draw for each of `count` members, in a buffer called `frozen`. A layer without noise does nothing."""
        if self.facts.has_noise:
            raise Unsupported(f"{type(self).__name__} cannot be frozen: it draws noise, but does not say how to fix it")

    def forward(self, x: Tensor) -> Tensor:
        current = get_pass()
        if current is None:
            return call_in_pass(self._recall(), self.forward, x)
        shared = current.only is not None or self.gets_shared_rows(current)
        self.check_rows(current, x)
        y = self.respond(pytrees.split_members(x, 1 if shared else current.computed))
        return pytrees.join_members(y if current.probe is None else self.mark(y))

    # --- what the pass says ---------------------------------------------------------------------------------------

    @property
    def current(self) -> Pass:
        """The pass that runs this layer."""
        current = get_pass()
        return self._recall() if current is None else current

    @property
    def facts(self) -> LayerFacts:
        """What the search learned about this layer."""
        return self.current.plan.layers.get(self.place, UNKNOWN)

    def is_branch(self, current: Pass) -> bool:
        """Whether the shared batch ends here."""
        branch = current.plan.branch
        return branch.name == self.place and branch.kind == "layer"

    def gets_shared_rows(self, current: Pass) -> bool:
        """Whether the batch that arrives is shared by the members."""
        return not current.dealt and self.is_branch(current)

    def check_rows(self, current: Pass, x: Tensor) -> None:
        """Raise if the rows that arrive cannot be the rows of members: a network may pick rows by their content."""
        if self.training and not torch.compiler.is_compiling() and is_checkpointing():
            if current.only is not None and current.plan.branch.kind != "loop":
                raise RecomputationError
            self._remembered = current
        each = current.plan.layers.get(self.place, UNKNOWN).rows_each
        if current.only is not None or each is None:
            return
        expected = each * current.rows * (1 if self.gets_shared_rows(current) else current.computed)
        if x.shape[0] == expected:
            return
        if is_in_backward():
            raise RuntimeError(
                "gradient checkpointing recomputes the last pass, and another pass ran since: call backward first"
            )
        raise RowsChangedError(f"{expected} rows were expected, got {x.shape[0]}")

    def _recall(self) -> Pass:
        """The pass that gradient checkpointing computes again."""
        found = self._remembered
        if not is_in_backward() or found is None:
            raise RuntimeError(f"{self.place or type(self).__name__} runs inside its ensemble only: call the ensemble")
        if found.only is not None:
            raise RuntimeError(
                "members that run one after the other cannot be recomputed in the backward pass: do without gradient "
                "checkpointing here"
            )
        return found

    # --- what `respond` may use -----------------------------------------------------------------------------------

    def pick(self, stacked: Tensor) -> Tensor:
        """Of something kept per member, `[M, …]`, the rows of the members that this pass computes."""
        current = get_pass() or self._recall()
        if current.only is None and current.chosen is None:
            return stacked
        chosen = list(current.numbers)
        if chosen == list(range(chosen[0], chosen[0] + len(chosen))):
            return stacked[chosen[0] : chosen[0] + len(chosen)]  # not by a list of indices, which copies
        return stacked[chosen]

    def draw(self, sample: Callable[..., Tensor], shape: Sequence[int], like: Tensor, per_row: bool = True) -> Tensor:
        """Noise for every member that runs, `[M, *shape]`: `sample` is `torch.randn` or `torch.rand`.

        Noise is drawn `per_row`, so that the first axis of `shape` has the rows of the batch, or once for all rows, as that of
        weights is. Half precisions are drawn in single: eight bits of a uniform number would round every rate to 1/256.
        """
        current = self.current
        if current.probe is not None:
            current.probe.noisy.add(self.place)
            if not per_row:
                current.probe.drawn_size = max(current.probe.drawn_size, math.prod(shape))
            return current.probe.draw(sample, shape, current.only).to(like.device)
        dtype = like.dtype if like.dtype == torch.double else torch.float
        share, whole = self._widen((current.computed, *shape), per_row)
        drawn = noise.arrange_like(sample(math.prod(whole), dtype=dtype, device=like.device), whole, like)
        return drawn if share is None else share.take(drawn, axis=1)

    def draw_dropout_mask(self, rate: float, shape: Sequence[int], like: Tensor) -> tuple[Tensor, float]:
        """A mask `[M, *shape]` of zeros and ones for every member that runs, and its rate, rounded (see `noise`)."""
        near, current = noise.round_rate(rate), self.current
        if near is None or current.probe is not None or like.device.type != "cpu" or torch.compiler.is_compiling():
            return self.draw(torch.rand, shape, like) >= rate, rate
        share, whole = self._widen((current.computed, *shape))
        mask = noise.arrange_like(noise.draw_mask(math.prod(whole), near), whole, like)
        return mask if share is None else share.take(mask, axis=1), near.rate

    def _widen(self, shape: Sequence[int], per_row: bool = True) -> tuple[Share | None, Sequence[int]]:
        """For which shape to draw noise `[M, B, …]`: if the rows are a share of a batch, that share, and the shape for all."""
        current = self.current
        if current.share is None or not per_row or len(shape) < 2 or shape[1] % current.rows:
            return None, shape
        return current.share, current.share.widen(shape, axis=1)

    def mark(self, y: Tensor) -> Tensor:
        """During a search, `[M, B, …]` with every member's answer distorted in its own way, and kept for comparison.

        Members that are (still) alike, or all zero, would hide a mistaken axis; these cannot.
        """
        current = self.current
        probe = current.probe
        if probe is None or not y.is_floating_point():
            return y
        factor, shift = (0.3 * probe.draw(torch.randn, y.shape[1:], current.only).to(y) for _ in range(2))
        y = y * (1 + factor) + shift
        probe.answers.append(y)
        return y


def is_checkpointing() -> bool:
    """Whether this pass may be recomputed: gradient checkpointing keeps tensors by hooks, or turns gradients off."""
    return not torch.is_grad_enabled() or torch._C._autograd._top_saved_tensors_default_hooks(False) is not None


def is_in_backward() -> bool:
    """Whether a backward pass runs in this thread."""
    return torch._C._current_graph_task_id() != -1


def name_layers(net: nn.Module) -> None:
    """Tell every converted layer its name in the network."""
    for name, layer in find_own_layers(net).items():
        layer.place = name


def find_own_layers(net: nn.Module) -> dict[str, Converted]:
    """The converted layers of a network by name, without those of an ensemble that is part of the network."""
    inner = tuple(f"{name}." for name, module in net.named_modules() if name and hasattr(module, "executor"))
    found = {name: layer for name, layer in net.named_modules() if isinstance(layer, Converted)}
    return {name: layer for name, layer in found.items() if not inner or not name.startswith(inner)}


class Likeness:
    """What a module was like, without its numbers."""

    def __init__(self, module: nn.Module) -> None:
        self.template = copy_to_meta(module)


class PerMember(MemberLayer):
    """M modules of the same kind, one a member. They may take and return several tensors.

    If the pass has K times as many members, each module serves K in a row: they are draws of one member.

    >>> layer = PerMember([nn.Linear(3, 2) for _ in range(4)])
    >>> call_in_pass(Pass(count=4), layer, torch.randn(4 * 5, 3)).shape
    torch.Size([20, 2])
    """

    holds_original = True

    def __init__(self, copies: Sequence[nn.Module]) -> None:
        super().__init__()
        self.copies = nn.ModuleList(copies)
        self.likeness = Likeness(copies[0])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        current = get_pass()
        if current is None:
            return call_in_pass(self._recall(), functools.partial(self.forward, *args, **kwargs))
        leaves = list(pytrees.iterate_tensors((args, kwargs)))
        flags = current.plan.layers.get(self.place, UNKNOWN).flags or (True,) * len(leaves)
        carrying = [leaf for leaf, flag in zip(leaves, flags, strict=False) if flag]
        if carrying:
            self.check_rows(current, carrying[0])
        draws = current.count // len(self.copies)
        owners = [self.copies[number // draws] for number in current.numbers]
        if current.only is not None:
            answers = [owners[0](*args, **kwargs)]
        elif self.gets_shared_rows(current):
            answers = [copy(*args, **kwargs) for copy in owners]
        else:
            # The draws of one member go through its module in one call.
            starts = [place for place, copy in enumerate(owners) if place == 0 or copy is not owners[place - 1]]
            counts = [stop - start for start, stop in zip(starts, [*starts[1:], len(owners)], strict=True)]
            # Not by index: each would go back as a tensor of zeros of the whole's size.
            split = [leaf.split([count * (leaf.shape[0] // len(owners)) for count in counts]) for leaf in carrying]
            answers = []
            for start, *rows in zip(starts, *split, strict=True):
                own, named = pytrees.map_flagged_tensors(flags, functools.partial(_take_next, iter(rows)), (args, kwargs))
                answers.append(owners[start](*own, **named))
        if current.probe is None:
            return pytrees.concatenate(answers) if len(answers) > 1 else answers[0]
        count = current.computed
        return pytrees.map_tensors(lambda *ys: self.mark(torch.cat(ys).unflatten(0, (count, -1))).flatten(0, 1), *answers)

    def to_plain(self, index: int) -> nn.Module:
        return self.copies[index]


def _take_next(rows: Iterator[Tensor], _: Tensor) -> Tensor:
    return next(rows)
