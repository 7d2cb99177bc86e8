"""Late branching: members share all work until they first differ.

The batch is expanded at the deepest point from which everything downstream is consistent. The deepest candidate is the
first member layer itself; if a skip connection crosses it (a shared batch meets a branched one), the enclosing block is
tried, then the block around that, then the input. A network that takes no branched batch at all, because it keeps the
batch on another axis, say, runs its members one after the other.

No candidate is believed: each is compared with running the members one by one, on two rows, with members that are made to
differ (`MemberLayer.mark`). So the first forward pass on a new ensemble costs a few small passes more. The search runs on a
copy that shares the weights (`copy_for_evaluation`), so it disturbs nobody who uses the ensemble meanwhile.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from . import pytrees
from .errors import ConversionError
from .flop_counting import FlopCounter
from .members import MemberLayer, RowsChangedError, find_own_layers, is_checkpointing, is_in_backward
from .modes import copy_for_evaluation, evaluation_mode
from .passes import Branch, LayerFacts, Plan, Probe, get_pass
from .repeated_rows import attach_repeats, find_repeated

if TYPE_CHECKING:
    from .ensemble import Ensemble
    from .execution import Executor

LOOP = Plan(Branch("loop"))


class Expand:
    """A forward pre-hook that branches a shared batch where the plan of the pass says so."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.remembered: Any = None  # what gradient checkpointing will compute again

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        current = get_pass()
        if current is None:
            current = self.remembered if is_in_backward() else None
        elif module.training and is_checkpointing():
            self.remembered = current
        if current is None or current.only is not None or current.dealt or current.plan.branch != ("module", self.name):
            return args, kwargs
        count, tensors = current.computed, sum(1 for _ in pytrees.iterate_tensors((args, kwargs)))
        if tensors != len(current.plan.flags):
            raise RowsChangedError(f"{self.name} got {tensors} tensors, and {len(current.plan.flags)} were expected")
        return pytrees.map_flagged_tensors(current.plan.flags, lambda leaf: pytrees.repeat_rows(leaf, count), (args, kwargs))


def attach_branch(net: nn.Module, branch: Branch) -> None:
    """Put the hook of the branch on its module. It does nothing in passes with another plan, so it may stay."""
    if branch.kind == "module":
        module = net.get_submodule(branch.name)
        if not any(isinstance(hook, Expand) and hook.name == branch.name for hook in module._forward_pre_hooks.values()):
            module.register_forward_pre_hook(Expand(branch.name), with_kwargs=True)


def detach_branches(net: nn.Module) -> None:
    """Take all such hooks off."""
    for module in net.modules():
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, Expand):
                del module._forward_pre_hooks[key]
                module._forward_pre_hooks_with_kwargs.pop(key, None)


def find_plan(
    ensemble: "Ensemble", executor: "Executor", batch: Any, search: "Callable[[Ensemble, Executor, Any], Plan]"
) -> Plan:
    """The plan that a search finds for `batch`, on a copy of the ensemble whose parameters hold no zeros."""
    twin = copy_for_evaluation(ensemble, own_tables=True)
    replace_zeros(twin)
    with torch.no_grad(), keep_random_state(twin):
        return twin.complete_plan(search(twin, executor, batch), batch)


def plan_rows(twin: "Ensemble", executor: "Executor", batch: Any) -> Plan:
    """The plan with the deepest branch that gives the members' own answers on two rows of `batch`."""
    layers = name_member_layers(twin)
    two, probe = pytrees.take_rows(batch, 2), Probe(twin.count_probed())
    entering = pytrees.copy_tensors(two)
    with CallRecorder(twin.net) as calls:
        answer = executor.run_alone(twin, entering, 0, LOOP, probe)
    writes_input = find_writes(entering, two)
    twin.check_order(calls.order)
    answer_size = answer.numel() // 2
    if not layers:
        plan = Plan(Branch("none"), shared_size=max(calls.sizes) // 2, answer_size=answer_size, writes_input=writes_input)
        return replace(plan, channels_last=takes_channels_last(twin, executor, plan, two, None))
    candidates = list(list_candidates(calls.order, layers))
    with CallRecorder(twin.net) as more:
        executor.run_alone(twin, pytrees.take_rows(batch, 3), 0, LOOP, probe)
    flags = find_carriers(calls, more)
    alone, answers = [], []
    for index in range(probe.count):
        probe.restart()
        alone.append(executor.run_alone(twin, pytrees.copy_tensors(two), index, LOOP, probe))
        answers.append(probe.answers)
    reference = torch.stack(alone)
    require_difference(reference, layers)
    facts = {name: learn_facts(name, flags.get(name, ()), calls, probe) for name in layers}
    for branch in candidates:
        attach_branch(twin.net, branch)
        plan = Plan(branch, flags.get(branch.name, ()), facts, writes_input=writes_input)
        if gives_same_answers(twin, executor, plan, two, probe, reference, answers):
            plan = measure_sizes(twin, executor, plan, calls, two, probe)
            plan = replace(plan, answer_size=answer_size, drawn_size=probe.drawn_size)
            repeated = find_repeated(twin.net, branch, calls.order, layers, flags)
            attach_repeats(twin.net, repeated)
            again = replace(plan, repeated=repeated)
            if repeated and gives_same_answers(twin, executor, again, two, probe, reference, answers):
                plan = again
            return replace(plan, channels_last=takes_channels_last(twin, executor, plan, two, probe))
    return replace(LOOP, layers=facts, writes_input=writes_input)


def name_member_layers(twin: "Ensemble") -> dict[str, MemberLayer]:
    """The layers in which members differ, by name."""
    return {name: layer for name, layer in find_own_layers(twin.net).items() if isinstance(layer, MemberLayer)}


def find_writes(after: Any, before: Any) -> bool:
    """Whether a network changed the numbers of a batch that it was given."""
    return not all(map(is_equal, pytrees.iterate_tensors(after), pytrees.iterate_tensors(before)))


def require_difference(answers: Tensor, layers: Iterable[str]) -> None:
    """Raise ConversionError if all of several members answer the same, `[M, …]`, although these layers differ."""
    if len(answers) > 1 and torch.equal(answers, answers[:1].expand_as(answers)):
        raise ConversionError(
            f"what was converted ({', '.join(layers)}) does not influence the output, so all members would be the "
            "same: choose other layers, or another output="
        )


def learn_facts(name: str, flags: tuple[bool, ...], calls: "CallRecorder", probe: Probe) -> LayerFacts:
    """What two rows showed of one member layer."""
    rows_each = calls.rows[name][flags.index(True)] // 2 if True in flags else None
    return LayerFacts(flags, rows_each, name in probe.noisy, probe.rows.get(name))


def measure_sizes(twin: "Ensemble", executor: "Executor", plan: Plan, calls: "CallRecorder", two: Any, probe: Probe) -> Plan:
    """The plan with the numbers that one row takes, from what two took."""
    branch = plan.branch
    at = calls.order.index(branch.name) if branch.kind != "input" else 0
    after = at + (branch.kind == "layer")  # what enters a layer in which members part is still shared
    shared, branched = (max(sizes, default=2) // 2 for sizes in (calls.sizes[:after], calls.sizes[after:]))
    modules = dict(twin.net.named_modules())
    noisy = any(isinstance(modules[name], nn.modules.dropout._DropoutNd) for name in calls.order[:at])
    share = 1.0 if noisy else 0.0
    if not noisy and at > 0:
        run = lambda: executor.run_alone(twin, pytrees.copy_tensors(two), 0, plan, probe)  # noqa: E731
        share = measure_trunk(run, modules[branch.name])
    return replace(plan, shared_size=shared, branched_size=branched, trunk_share=share)


def measure_trunk(run: Callable[[], Any], part: nn.Module) -> float:
    """The share of a member's FLOPs before `part`."""
    before = []
    with FlopCounter() as counter:
        hook = part.register_forward_pre_hook(lambda *_: before.append(counter.get_total_flops()))
        try:
            run()
        finally:
            hook.remove()
    return before[0] / max(counter.get_total_flops(), 1)


def find_carriers(two: "CallRecorder", three: "CallRecorder") -> dict[str, tuple[bool, ...]]:
    """Of every module, which tensors among its arguments carry the batch: those that grow with it from two rows to three."""
    return {
        name: tuple(3 * a == 2 * b for a, b in zip(rows, three.rows[name], strict=True))
        for name, rows in two.rows.items()
        if len(rows) == len(three.rows.get(name, []))
    }


def list_candidates(order: list[str], layers: dict[str, MemberLayer]) -> Iterator[Branch]:
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


def gives_same_answers(
    twin: "Ensemble",
    executor: "Executor",
    plan: Plan,
    two: Any,
    probe: Probe,
    reference: Tensor,
    answers: list[list[Tensor]],
) -> bool:
    """Whether the members together answer as each did alone, in every member layer and in the end.

    A shape that does not fit is an answer, too, whatever the network says about it.
    """
    probe.restart()
    try:
        together = executor.run_plan(twin, two, plan, probe)
    except Exception:
        return False
    if len(probe.answers) != len(answers[0]):
        return False
    for step, answer in enumerate(probe.answers):
        if not is_close(answer, torch.cat([one[step] for one in answers])):
            return False
    finite = reference.nan_to_num(0, 0, 0)
    spread = (finite - finite.mean((0, 1), keepdim=True)).abs().max().item()
    return is_close(together, reference, 0.1 * spread)


def is_close(answer: Tensor, reference: Tensor, most: float = math.inf) -> bool:
    """Whether two answers differ by no more than rounding, even over many layers, and by no more than `most`."""
    if reference.numel() == 0:  # of a layer that got no rows
        return answer.shape == reference.shape
    tolerance = {torch.double: 1e-8, torch.float: 1e-3}.get(reference.dtype, 5e-2)
    largest = reference.nan_to_num(0, 0, 0).abs().max().item()
    return answer.shape == reference.shape and torch.allclose(
        answer, reference, rtol=0, atol=min(tolerance * largest, most), equal_nan=True
    )


def is_equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN equals NaN."""
    if one.is_floating_point():
        return torch.equal(one.nan_to_num(), other.nan_to_num())
    return torch.equal(one, other)


def takes_channels_last(twin: "Ensemble", executor: "Executor", plan: Plan, two: Any, probe: Probe | None) -> bool:
    """Whether images with their channels last are worth it, and go through: some networks call `.view` on them."""
    if not uses_images(twin.net, two):
        return False
    if probe is not None:
        probe.restart()
    try:
        executor.run_plan(twin, two.contiguous(memory_format=torch.channels_last), plan, probe)
    except RuntimeError:
        return False
    return True


def uses_images(net: nn.Module, x: Any) -> bool:
    """Whether convolutions see images with more than one channel: they are faster with the channels last in memory."""
    if not isinstance(x, Tensor) or x.dim() != 4 or x.shape[1] == 1 or not x.is_floating_point():
        return False
    layers = (getattr(vars(module).get("affine"), "template", module) for module in net.modules())
    return any(isinstance(layer, nn.Conv2d) for layer in layers)


class CallRecorder:
    """Records which modules of a network run, in which order, and how long the first axes of their arguments are."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        self.order: list[str] = []  # the network itself is ""
        self.rows: dict[str, list[int]] = {}
        self.sizes: list[int] = []  # numbers in the largest tensor that each was called with
        self._hooks: list[Any] = []

    def __enter__(self) -> "CallRecorder":
        for name, module in self.net.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._make_hook(name), with_kwargs=True))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _make_hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def record(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.order.append(name)
            tensors = list(pytrees.iterate_tensors((args, kwargs)))
            self.sizes.append(max((tensor.numel() for tensor in tensors), default=0))
            self.rows.setdefault(name, [tensor.size(0) if tensor.dim() else 0 for tensor in tensors])

        return record


@contextmanager
def dry_run(module: nn.Module) -> Iterator[None]:
    """Inside the block `module` is in evaluation mode, without gradients, and its random numbers are not used up."""
    with evaluation_mode(module), torch.no_grad(), keep_random_state(module):
        yield


@contextmanager
def keep_random_state(module: nn.Module) -> Iterator[None]:
    """Afterwards the generators of the module's devices are in the state they were in."""
    devices = {p.device for p in module.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=list(devices)):
        yield


def replace_zeros(twin: nn.Module) -> None:
    """Give the copy noise in place of parameters that are all zero: such a layer would hide every mistake before it."""
    generator = torch.Generator().manual_seed(0)
    for parameter in list(twin.parameters()):
        if parameter.is_floating_point() and not parameter.any():
            noise = (torch.randn(parameter.shape, generator=generator) * 0.3).to(parameter)
            for module in twin.modules():
                for name, own in module._parameters.items():
                    if own is parameter:
                        module._parameters[name] = nn.Parameter(noise, parameter.requires_grad)
