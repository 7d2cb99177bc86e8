"""What a forward pass tells the layers it runs through: an immutable value that belongs to that call.

The value is kept per thread while the call lasts, so several threads may run one ensemble at once. `Plan` is what is known of
the network (see `branching`), `Pass` what is known of the call.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .shares import Share


class Branch(NamedTuple):
    """Where the members part."""

    kind: Literal["layer", "module", "input", "loop", "none", "apart"]
    name: str = ""

    def __str__(self) -> str:
        return {
            "layer": f"members part in {self.name or 'the network itself'}; all before it runs once",
            "module": f"members part on entering {self.name}; all before it runs once",
            "input": "members part at the input",
            "loop": "members run one after the other",
            "none": "one member",
            "apart": "every member is a network of its own",
        }[self.kind]


@dataclass(frozen=True, eq=False)
class LayerFacts:
    """What the search learned about one member layer."""

    flags: tuple[bool, ...] = ()
    """Which tensors among its arguments carry the batch."""
    rows_each: int | None = None
    """How many rows arrive for each row of the batch, if that is known."""
    has_noise: bool = False
    """Whether it drew noise."""
    row: Tensor | None = None
    """An empty batch `[0, …]` of the rows that it got."""


UNKNOWN = LayerFacts()


TRUNK_SHARE = 0.02
"""Members share the work before they part if it is more than this part of their FLOPs."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How the members of one ensemble run: found once, replaced as a whole, never changed."""

    branch: Branch
    flags: tuple[bool, ...] = ()
    """Which arguments' tensors are expanded, where members part on entering a module."""
    layers: Mapping[str, LayerFacts] = field(default_factory=dict)
    """By the name of the member layer."""
    shared_size: int = 1
    """Numbers in the largest tensor of a row before members part."""
    branched_size: int = 1
    """The same afterwards."""
    answer_size: int = 1
    """Numbers in a member's answer to a row."""
    drawn_size: int = 0
    """Numbers in the largest draw that a member needs however few its rows are: that of its weights, say."""
    trunk_share: float = 1.0
    """The share of a member's FLOPs before members part. It counts as 1 where it is not known."""
    channels_last: bool = False
    """Whether images had better come with their channels last in memory."""
    writes_input: bool = False
    """Whether the network changes its input in place."""
    repeated: frozenset[str] = frozenset()
    """Plain layers that get the same rows for every member, although members have parted: see `repeated_rows`."""

    @property
    def has_trunk(self) -> bool:
        """Whether the work before members part is worth sharing."""
        return self.trunk_share > TRUNK_SHARE


class Probe:
    """Repeatable noise, so that two ways to run the same network can be compared number by number.

    The n-th draw of a pass is the same tensor in every pass, whether all members run together or one alone. A probe belongs to
    one search.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.draws = 0
        self.answers: list[Tensor] = []  # of every member layer that ran, in order, `[M, B, …]`
        self.drawn_size = 0  # numbers in the largest draw for all rows of a member
        self.noisy: set[str] = set()  # layers that drew noise
        self.rows: dict[str, Tensor] = {}  # an empty batch of the rows that a layer got

    def restart(self) -> None:
        """Begin a pass anew: its draws are those of the last one."""
        self.draws = 0
        self.answers = []

    def draw(self, sample: Callable[..., Tensor], shape: Sequence[int], only: int | None) -> Tensor:
        """The next draw, `[M or 1, *shape]`."""
        generator = torch.Generator().manual_seed(self.draws)
        self.draws += 1
        drawn = sample((self.count, *shape), generator=generator)
        return drawn if only is None else drawn[only : only + 1]


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass."""

    count: int
    """M."""
    rows: int = 0
    """B."""
    plan: Plan = Plan(Branch("input"))
    only: int | None = None
    """Run this member alone, on a plain batch."""
    chosen: tuple[int, ...] | None = None
    """Run these members, in this order; None runs all."""
    dealt: bool = False
    """The batch enters the network branched: each member has rows of its own."""
    probe: Probe | None = None
    share: Share | None = None
    """Which part of a batch its rows are, where several processes share it."""

    @property
    def computed(self) -> int:
        """How many members this pass computes."""
        if self.only is not None:
            return 1
        return self.count if self.chosen is None else len(self.chosen)

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the members that this pass computes."""
        if self.only is not None:
            return (self.only,)
        return range(self.count) if self.chosen is None else self.chosen


_thread = threading.local()


def get_pass() -> Pass | None:
    """The pass that runs in this thread, if one does."""
    return getattr(_thread, "current", None)


@contextmanager
def running(current: Pass) -> Iterator[None]:
    """Inside the block, layers in this thread see this pass."""
    before = get_pass()
    _thread.current = current
    try:
        yield
    finally:
        _thread.current = before


def call_in_pass(current: Pass, call: Callable[..., Any], *arguments: Any) -> Any:
    """`call(*arguments)` inside `running(current)`, at a fraction of its cost."""
    before = get_pass()
    _thread.current = current
    try:
        return call(*arguments)
    finally:
        _thread.current = before
