"""How M members travel through one network.

A batch is either *shared*, `[B, …]`, the same rows for every member, or *branched*, `[M·B, …]`, member-major: first all
rows of member 0, then all of member 1. Layers that do not differ between members see a longer batch and notice nothing. A
`MemberLayer` opens the first axis again, answers for every member, and closes it.

One `Members` object is shared by an ensemble and its layers. It is set before a forward pass and constant during it.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import nested, noise
from .affine import copy_to_meta
from .errors import Unsupported


class Members:
    """What a forward pass tells the member layers."""

    def __init__(self, count: int) -> None:
        self.count = count  # M
        self.only: int | None = None  # run this member alone, on a plain batch
        self.chosen = False  # members run one after the other because that is faster, not because they must
        self.dealt = False  # the batch enters the network branched: each member has rows of its own
        self.rows = 0  # B
        self.probe: Probe | None = None


class Probe:
    """Repeatable noise, so that two ways to run the same network can be compared number by number.

    The n-th draw of a pass is the same tensor in every pass, whether all members run together or one alone.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.draws = 0
        self.answers: list[Tensor] = []  # of every member layer that ran, in order, `[M, B, …]`

    def restart(self) -> None:
        self.draws = 0
        self.answers = []

    def draw(self, sample: Callable[..., Tensor], shape: Sequence[int], only: int | None) -> Tensor:
        generator = torch.Generator().manual_seed(self.draws)
        self.draws += 1
        drawn = sample((self.count, *shape), generator=generator)
        return drawn if only is None else drawn[only : only + 1]


class RowsChanged(RuntimeError):
    """A member layer got another number of rows than where members part was found out: it has to be found out again."""


class Recomputed(RuntimeError):
    """Members were to run one after the other, and what they do will be computed again in the backward pass."""


class Converted(nn.Module):
    """A layer that surgery put into a network.

    A network may still read what the old layer was like (`in_features`, say), but not its weight or bias: what was
    computed with them would silently bypass the members. So no converted layer has anything called `weight` or `bias`.
    """

    undecayed: tuple[str, ...] = ()
    """Names of own parameters that weight decay must leave alone."""
    place = ""
    """The name of the layer that it took the place of."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, tuple[Any, Tensor]] = {}

    def once(self, name: str, compute: Callable[[], Tensor], *sources: Tensor) -> Tensor:
        """What is computed of parameters, again only when one of them has changed. For evaluation without gradients; then a
        weight that many are averaged or squared into costs nothing from the second batch on."""
        if self.training or torch.is_grad_enabled() or torch.compiler.is_compiling() or any(s.is_inference() for s in sources):
            return compute()
        # Torch counts what is written into a tensor. Writing into its .data is not counted: a change of mode forgets all.
        now = [(id(source), source._version, source.data_ptr(), source.dtype) for source in sources]
        if self._known.get(name, (None,))[0] != now:
            self._known[name] = now, compute()
        return self._known[name][1]

    def train(self, mode: bool = True) -> Any:
        if mode != self.training:
            self._known.clear()
        return super().train(mode)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}}  # a copy, or a file, does not need it

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            known = self.__dict__.get("affine") or self.__dict__.get("likeness")
            if known is None or not hasattr(known.template, name):
                raise
        value = getattr(known.template, name)
        if isinstance(value, Tensor):
            raise AttributeError(
                f"{self.place or 'the network'} was converted and has no {name} to read: leave it out, exclude={self.place!r}"
            )
        return value

    def plain(self, index: int) -> nn.Module:
        """What member `index` has here, as a plain module; `Unsupported` where there is no such thing."""
        raise TypeError(f"{type(self).__name__} must define plain")


class MemberLayer(Converted):
    """A layer in which members differ. Subclasses write `respond` and `plain`."""

    def __init__(self, members: Members) -> None:
        super().__init__()
        self.members = members
        self.branches = False  # the shared batch ends here: late branching sets it on one layer
        self.each_row: int | None = None  # how many rows arrive here for each row of the batch, once that is known
        self.draws = False  # whether it has been seen to draw noise

    def respond(self, x: Tensor) -> Tensor:
        """`[1 or M, B, …]` → `[M, B, …]`; a single row of members is a batch that all of them share."""
        raise TypeError(f"{type(self).__name__} must define respond")

    def freeze(self) -> None:
        """Fix one draw for each member, in a buffer called `frozen`. A layer without noise has nothing to fix."""
        if self.draws:
            raise Unsupported(f"{type(self).__name__} cannot be frozen: it draws noise, but does not say how to fix it")

    def forward(self, x: Tensor) -> Tensor:
        self.check_rows(x)
        together = self.members.only is not None or self.shares
        opened = x.unsqueeze(0) if together else x.unflatten(0, (self.members.count, -1))
        return self.marked(self.respond(opened)).flatten(0, 1)

    def check_rows(self, x: Tensor) -> None:
        """Rows that a network picks by their content, or time steps that it has more of now, are not rows of members."""
        members = self.members
        if members.only is not None:
            if members.chosen and self.checkpointed:
                raise Recomputed
            if torch._C._current_graph_task_id() != -1:
                raise RuntimeError(
                    "members that run one after the other cannot be recomputed in the backward pass: do without gradient "
                    "checkpointing here"
                )
        elif self.each_row is not None:
            expected = self.each_row * members.rows * (1 if self.shares else members.count)
            if x.shape[0] != expected and torch._C._current_graph_task_id() != -1:
                raise RuntimeError(
                    "gradient checkpointing recomputes the last pass, and another pass ran since: call backward first"
                )
            if x.shape[0] != expected:
                raise RowsChanged(f"{expected} rows were expected, got {x.shape[0]}")

    @property
    def checkpointed(self) -> bool:
        """Whether this pass may be recomputed: gradient checkpointing keeps tensors by hooks, or turns gradients off."""
        if not self.training:
            return False
        return not torch.is_grad_enabled() or torch._C._autograd._top_saved_tensors_default_hooks(False) is not None

    @property
    def shares(self) -> bool:
        """Whether the batch that arrives is shared by the members."""
        return self.branches and not self.members.dealt

    def pick(self, stacked: Tensor) -> Tensor:
        """Of something kept per member, `[M, …]`, what this pass needs: all of it, or the only member's row."""
        only = self.members.only
        return stacked if only is None else stacked[only : only + 1]

    def draw(self, sample: Callable[..., Tensor], shape: Sequence[int], like: Tensor) -> Tensor:
        """Noise for every member that runs, `[M, *shape]`: `sample` is `torch.randn` or `torch.rand`.

        Half precisions are drawn in single: eight bits of a uniform number would round every rate to 1/256.
        """
        members = self.members
        if members.probe is not None:
            self.draws = True
            return members.probe.draw(sample, shape, members.only).to(like.device)
        count = members.count if members.only is None else 1
        dtype = like.dtype if like.dtype == torch.double else torch.float
        flat = sample(count * math.prod(shape), dtype=dtype, device=like.device)
        return noise.arrange_like(flat, (count, *shape), like)

    def keep(self, rate: float, shape: Sequence[int], like: Tensor) -> tuple[Tensor, float]:
        """A dropout mask `[M, *shape]` of zeros and ones for every member that runs, and its rate, rounded (see `noise`)."""
        near = noise.round_rate(rate)
        if near is None or self.members.probe is not None or like.device.type != "cpu" or torch.compiler.is_compiling():
            return self.draw(torch.rand, shape, like) >= rate, rate
        count = self.members.count if self.members.only is None else 1
        return noise.arrange_like(noise.draw_mask(count * math.prod(shape), near), (count, *shape), like), near.rate

    def marked(self, y: Tensor) -> Tensor:
        """During a probe, `[M, B, …]` with every member's answer distorted in its own way, and kept for comparison.

        Members that are (still) alike, or all zero, would hide a mistaken axis; these cannot.
        """
        probe = self.members.probe
        if probe is None or not y.is_floating_point():
            return y
        factor, shift = (0.3 * probe.draw(torch.randn, y.shape[1:], self.members.only).to(y) for _ in range(2))
        y = y * (1 + factor) + shift
        probe.answers.append(y)
        return y


class Likeness:
    """What a module was like, without its numbers."""

    def __init__(self, module: nn.Module) -> None:
        self.template = copy_to_meta(module)


class PerMember(MemberLayer):
    """M modules of the same kind, one a member. They may take and return several tensors.

    >>> layer = PerMember([nn.Linear(3, 2) for _ in range(4)], Members(4))
    >>> layer(torch.randn(4 * 5, 3)).shape
    torch.Size([20, 2])
    """

    def __init__(self, copies: Sequence[nn.Module], members: Members) -> None:
        super().__init__(members)
        self.copies = nn.ModuleList(copies)
        self.likeness = Likeness(copies[0])
        self.flags: list[bool] | None = None  # which tensors among the arguments carry the batch, once that is known

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        members = self.members
        flags = self.flags or [True] * sum(1 for _ in nested.iterate_tensors((args, kwargs)))
        carrying = next((leaf for leaf, flag in zip(nested.iterate_tensors((args, kwargs)), flags, strict=False) if flag), None)
        if carrying is not None:
            self.check_rows(carrying)
        if members.only is not None:
            answers = [self.copies[members.only](*args, **kwargs)]
        elif self.shares:
            answers = [copy(*args, **kwargs) for copy in self.copies]
        else:
            # Not by index: each would go back as a tensor of zeros of the whole's size.
            carried = [leaf for leaf, flag in zip(nested.iterate_tensors((args, kwargs)), flags, strict=True) if flag]
            opened = [leaf.unflatten(0, (members.count, -1)).unbind() for leaf in carried]
            answers = []
            for copy, *rows in zip(self.copies, *opened, strict=True):
                own, named = nested.map_flagged_tensors(flags, functools.partial(_next, iter(rows)), (args, kwargs))
                answers.append(copy(*own, **named))
        if members.probe is None:
            return nested.concatenate(answers) if len(answers) > 1 else answers[0]
        return nested.map_tensors(lambda *ys: self.marked(torch.stack(ys)).flatten(0, 1), *answers)

    def plain(self, index: int) -> nn.Module:
        return self.copies[index]


def _next(rows: Iterator[Tensor], _: Tensor) -> Tensor:
    return next(rows)
