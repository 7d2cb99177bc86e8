"""Late branching: members share all work until they first differ.

The batch is expanded at the deepest point from which everything downstream is consistent. The deepest candidate is the
first member layer itself; if a skip connection crosses it (a shared batch meets a branched one), the enclosing block is
tried, then the block around that, then the input. A network that takes no branched batch at all, because it keeps the batch
on another axis, say, runs its members one after the other.

No candidate is believed: each is compared with running the members one by one, on two rows, with members that are made to
differ (`MemberLayer.marked`). So the first forward pass on a new ensemble costs a few small passes more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from . import trees
from .errors import ConversionError
from .members import MemberLayer, Members, Probe

if TYPE_CHECKING:
    from .ensemble import Ensemble


class Branch(NamedTuple):
    """Where the members part."""

    kind: Literal["layer", "module", "input", "loop", "none", "apart"]
    name: str = ""

    def __str__(self) -> str:
        return {
            "layer": f"members part in {self.name}; all before it runs once",
            "module": f"members part on entering {self.name}; all before it runs once",
            "input": "members part at the input",
            "loop": "members run one after the other",
            "none": "one member",
            "apart": "every member is a network of its own",
        }[self.kind]


class Expand:
    """A forward pre-hook that branches a shared batch."""

    def __init__(self, members: Members) -> None:
        self.members = members

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        members = self.members
        if members.only is not None or members.dealt:
            return args, kwargs
        return trees.repeated((args, kwargs), members.count)


def find(ensemble: "Ensemble", batch: Any) -> Branch:
    """The deepest branch that gives the members' own answers on two rows of `batch`."""
    layers = {name: m for name, m in ensemble.net.named_modules() if isinstance(m, MemberLayer)}
    if not layers:
        return Branch("none")
    rows = trees.apply(lambda leaf: torch.cat([leaf[:2], leaf[:2]])[:2].detach(), batch)
    with quiet(ensemble):
        ensemble.state.count = ensemble.probed
        probe = ensemble.state.probe = Probe(ensemble.probed)
        try:
            order = calls(ensemble.net, lambda: ensemble.alone(rows, 0))
            ensemble.check_order(order)
            alone = []
            for index in range(probe.count):
                probe.restart()
                alone.append(ensemble.alone(rows, index))
            reference = torch.stack(alone)
            for branch in candidates(order, layers):
                place(ensemble, branch)
                if same(ensemble, rows, reference):
                    return branch
        finally:
            ensemble.state.probe = None
    loop = Branch("loop")
    place(ensemble, loop)
    return loop


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


def place(ensemble: "Ensemble", branch: Branch) -> None:
    """Put the branch where it belongs, and nowhere else."""
    for name, module in ensemble.net.named_modules():
        unhook(module)
        if isinstance(module, MemberLayer):
            module.branches = branch.kind == "layer" and name == branch.name
        if branch.kind == "module" and name == branch.name:
            module.register_forward_pre_hook(Expand(ensemble.state), with_kwargs=True)
    ensemble.branch = branch


def unhook(module: nn.Module) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, Expand):
            del module._forward_pre_hooks[key]
            module._forward_pre_hooks_with_kwargs.pop(key, None)


def same(ensemble: "Ensemble", rows: Any, reference: Tensor) -> bool:
    """Whether the members together answer as each did alone. A shape that does not fit is an answer, too."""
    assert ensemble.state.probe is not None
    ensemble.state.probe.restart()
    try:
        together = ensemble.together(rows)
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
        return False
    return agree(together, reference)


def agree(answer: Tensor, reference: Tensor) -> bool:
    """Whether two answers differ by no more than rounding, even over many layers in half precision."""
    tolerance = {torch.double: 1e-8, torch.float: 1e-3}.get(reference.dtype, 5e-2)
    largest = reference.nan_to_num(0, 0, 0).abs().max().item()
    return answer.shape == reference.shape and torch.allclose(
        answer, reference, rtol=0, atol=tolerance * largest, equal_nan=True
    )


def calls(net: nn.Module, run: Any) -> list[str]:
    """The names of the modules in the order in which `run` calls them; the network itself is ""."""
    order: list[str] = []
    hooks = [
        module.register_forward_pre_hook(lambda _, __, name=name: order.append(name))
        for name, module in net.named_modules()
    ]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return order


@contextmanager
def quiet(module: nn.Module) -> Iterator[None]:
    """Run `module` for a look only: evaluation mode, no gradient, no random number used up, all restored."""
    training = {part: part.training for part in module.modules()}
    devices = {p.device for p in module.parameters() if p.device.type == "cuda"}
    module.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=list(devices)):
            yield
    finally:
        for part, mode in training.items():
            part.training = mode
