"""Late branching: members share all work until they first differ.

The batch is expanded at the deepest point from which everything downstream is consistent. The deepest candidate is the
first member layer itself; if a skip connection crosses it (a shared batch meets a branched one), the enclosing block is
tried, then the block around that, then the input. A network that takes no branched batch at all, because it keeps the
batch on another axis, say, runs its members one after the other.

No candidate is believed: each is compared with running the members one by one, on two rows, with members that are made to
differ (`MemberLayer.marked`). So the first forward pass on a new ensemble costs a few small passes more.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from . import nested
from .errors import ConversionError
from .members import MemberLayer, Members, PerMember, Probe
from .modes import evaluation_mode

if TYPE_CHECKING:
    from .ensemble import Ensemble


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


class Extent(NamedTuple):
    """What a row takes: elements of its largest tensor before members part, and after; and whether what they share counts."""

    shared: int = 1
    branched: int = 1
    trunk: bool = True


TRUNK = 0.02
"""From this share of all FLOPs on, what members have in common is computed once."""


class Expand:
    """A forward pre-hook that branches a shared batch. `flags` say which of the arguments' tensors carry the batch."""

    def __init__(self, members: Members, flags: list[bool]) -> None:
        self.members = members
        self.flags = flags

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        members = self.members
        if members.only is not None or members.dealt:
            return args, kwargs
        return nested.map_flagged_tensors(self.flags, lambda leaf: nested.repeat_rows(leaf, members.count), (args, kwargs))


def find(ensemble: "Ensemble", batch: Any) -> Branch:
    """The deepest branch that gives the members' own answers on two rows of `batch`."""
    layers = {name: m for name, m in ensemble.net.named_modules() if isinstance(m, MemberLayer)}
    state, two = ensemble.state, nested.take_rows(batch, 2)
    before = state.count
    ensemble.extent = Extent()  # of an earlier search: members that ran one after the other would agree with themselves
    with dry_run(ensemble), noise_for_zeros(ensemble):
        state.count = ensemble.probed
        probe = state.probe = Probe(ensemble.probed)
        try:
            with CallRecorder(ensemble.net) as calls:
                ensemble.alone(two, 0)
            ensemble.check_order(calls.order)
            if not layers:
                ensemble.extent = Extent(shared=max(calls.widths) // 2)
                return Branch("none")
            branches = list(candidates(calls.order, layers))
            with CallRecorder(ensemble.net) as more:
                ensemble.alone(nested.take_rows(batch, 3), 0)
            carried = carriers(calls, more)
            for name, layer in layers.items():
                flags = carried.get(name, [])
                layer.each_row = calls.sizes[name][flags.index(True)] // 2 if True in flags else None
                if isinstance(layer, PerMember):
                    layer.flags = flags
            alone, heard = [], []
            for index in range(probe.count):
                probe.restart()
                alone.append(ensemble.alone(two, index))
                heard.append(probe.answers)
            reference = torch.stack(alone)
            if probe.count > 1 and torch.equal(reference, reference[:1].expand_as(reference)):
                raise ConversionError(
                    f"what was converted ({', '.join(layers)}) does not influence the output, so all members would be the "
                    "same: choose other layers, or another output="
                )
            for branch in branches:
                place(ensemble, branch, carried.get(branch.name, []))
                if same(ensemble, two, reference, heard):
                    ensemble.extent = extent(ensemble, branch, calls, two)
                    return branch
        finally:
            state.probe, state.count = None, before
    loop = Branch("loop")
    place(ensemble, loop)
    return loop


def extent(ensemble: "Ensemble", branch: Branch, calls: "CallRecorder", two: Any) -> Extent:
    """What two rows took, for one."""
    at = calls.order.index(branch.name) if branch.kind != "input" else 0
    after = at + (branch.kind == "layer")  # what enters a layer in which members part is still shared
    shared, branched = (max(widths, default=2) // 2 for widths in (calls.widths[:after], calls.widths[after:]))
    modules = dict(ensemble.net.named_modules())
    noisy = any(isinstance(modules[name], nn.modules.dropout._DropoutNd) for name in calls.order[:at])
    return Extent(shared, branched, noisy or (at > 0 and common(ensemble, modules[branch.name], two) > TRUNK))


def common(ensemble: "Ensemble", part: nn.Module, two: Any) -> float:
    """The share of a member's FLOPs before `part`."""
    before = []
    with FlopCounterMode(display=False) as counter:
        hook = part.register_forward_pre_hook(lambda *_: before.append(counter.get_total_flops()))
        try:
            ensemble.alone(two, 0)
        finally:
            hook.remove()
    return before[0] / max(counter.get_total_flops(), 1)


def carriers(two: "CallRecorder", three: "CallRecorder") -> dict[str, list[bool]]:
    """Of every module, which tensors among its arguments carry the batch: those that grow with it from two rows to three."""
    return {
        name: [3 * a == 2 * b for a, b in zip(sizes, three.sizes[name], strict=True)]
        for name, sizes in two.sizes.items()
        if len(sizes) == len(three.sizes.get(name, []))
    }


def candidates(order: list[str], layers: dict[str, MemberLayer]) -> Iterator[Branch]:
    """Branches from the deepest outward. A module that runs twice would branch twice: it is passed over."""
    first = next((name for name in order if name in layers), None)
    if first is None:
        raise ConversionError(
            f"the network never runs the layers that were converted ({', '.join(layers)}): choose others with include="
        )
    if order.count(first) == 1:
        yield Branch("layer", first)
    around = first.rpartition(".")[0]
    while around:
        if order.count(around) == 1:
            yield Branch("module", around)
        around = around.rpartition(".")[0]
    yield Branch("input")


def place(ensemble: "Ensemble", branch: Branch, flags: list[bool] | None = None) -> None:
    """Put the branch where it belongs, and nowhere else."""
    for name, module in ensemble.net.named_modules():
        unhook(module)
        if isinstance(module, MemberLayer):
            module.branches = branch.kind == "layer" and name == branch.name
        if branch.kind == "module" and name == branch.name:
            module.register_forward_pre_hook(Expand(ensemble.state, flags or []), with_kwargs=True)
    ensemble.branch = branch


def unhook(module: nn.Module) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, Expand):
            del module._forward_pre_hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)


def same(ensemble: "Ensemble", rows: Any, reference: Tensor, heard: list[list[Tensor]]) -> bool:
    """Whether the members together answer as each did alone, in every member layer and in the end.

    A shape that does not fit is an answer, too, whatever the network says about it.
    """
    probe = ensemble.state.probe
    assert probe is not None
    probe.restart()
    try:
        together = ensemble.together(rows)
    except Exception:
        return False
    if len(probe.answers) != len(heard[0]):
        return False
    for step, answer in enumerate(probe.answers):
        if not is_close(answer, torch.cat([one[step] for one in heard])):
            return False
    finite = reference.nan_to_num(0, 0, 0)
    spread = (finite - finite.mean((0, 1), keepdim=True)).abs().max().item()
    return is_close(together, reference, 0.1 * spread)


def is_close(answer: Tensor, reference: Tensor, most: float = math.inf) -> bool:
    """Whether two answers differ by no more than rounding, even over many layers, and by no more than `most`."""
    tolerance = {torch.double: 1e-8, torch.float: 1e-3}.get(reference.dtype, 5e-2)
    largest = reference.nan_to_num(0, 0, 0).abs().max().item()
    return answer.shape == reference.shape and torch.allclose(
        answer, reference, rtol=0, atol=min(tolerance * largest, most), equal_nan=True
    )


def runs(ensemble: "Ensemble", images: Tensor) -> bool:
    """Whether images with their channels last go through. Some networks insist on the usual order: they call `.view`."""
    state = ensemble.state
    before = state.count
    with dry_run(ensemble):
        state.count, state.probe = ensemble.probed, Probe(ensemble.probed)
        try:
            ensemble.together(images.contiguous(memory_format=torch.channels_last))
        except RuntimeError:
            return False
        finally:
            state.probe, state.count = None, before
    return True


class CallRecorder:
    """Listens to a network: which modules run, in which order, and how long the first axes of their arguments are."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        self.order: list[str] = []  # the network itself is ""
        self.sizes: dict[str, list[int]] = {}
        self.widths: list[int] = []  # of the largest tensor that each was given, in numbers
        self._hooks: list[Any] = []

    def __enter__(self) -> "CallRecorder":
        for name, module in self.net.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._listener(name), with_kwargs=True))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _listener(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def listen(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.order.append(name)
            given = list(nested.iterate_tensors((args, kwargs)))
            sizes = [leaf.shape[0] if leaf.dim() else 0 for leaf in given]
            self.widths.append(max((leaf.numel() for leaf in given), default=0))
            self.sizes.setdefault(name, sizes)

        return listen


@contextmanager
def dry_run(module: nn.Module) -> Iterator[None]:
    """Run `module` for a look only: evaluation mode, no gradient, no random number used up."""
    devices = {p.device for p in module.parameters() if p.device.type == "cuda"}
    with evaluation_mode(module), torch.no_grad(), torch.random.fork_rng(devices=list(devices)):
        yield


@contextmanager
def noise_for_zeros(module: nn.Module) -> Iterator[None]:
    """A layer that starts as zeros would hide every mistake before it: for a look it gets noise, then its zeros again."""
    zeros = [p for p in module.parameters() if p.is_floating_point() and not p.any()]
    generator = torch.Generator().manual_seed(0)
    for parameter in zeros:
        noise = torch.randn(parameter.shape, generator=generator) * 0.3
        with torch.no_grad():
            parameter.copy_(noise)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter in zeros:
                parameter.zero_()
