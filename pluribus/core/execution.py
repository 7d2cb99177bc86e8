"""How the members of an ensemble run: together or one after the other, from where on apart, and on how many rows at once.

Together, members share calls, and all work before they part. One after the other, each has tensors that stay in the caches,
and convolutions without copies between them; nothing is gained by sharing where members part at the first weights. Both give
the same answers. The numbers here were found by measurement: docs/performance.md.

An executor keeps the plan of its ensemble, and nothing that belongs to a single pass. A plan is replaced as a whole, so threads
that run at the same moment each finish with the plan they began with.
"""

import copy
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from . import pytrees
from .branching import LOOP, attach_branch, find_plan, keep_random_state, plan_rows
from .errors import ConversionError, PluribusError
from .flop_counting import count_call_flops
from .members import MemberLayer, RecomputationError, RowsChangedError, name_layers
from .modes import copy_for_evaluation
from .output import select_output
from .passes import Branch, Pass, Plan, call_in_pass
from .pytrees import Views
from .repeated_rows import attach_repeats
from .shares import find_share
from .whole_batches import plan_whole

if TYPE_CHECKING:
    from .ensemble import Ensemble

APART_SIZE = 2**20
"""Numbers in a member's largest tensor from which on members run one after the other."""
CHUNK_SIZE = 2**20
"""Numbers in the largest tensor that an answer may take: about what caches hold, and what the allocator keeps at hand.

It is four times as many where each member runs alone, and for draws that have most of their work in common: fewer, larger
passes cost less."""
CHUNK_ROWS = 4096


class Step(NamedTuple):
    """Members that answer at once, and their FLOPs in units of those of one member alone."""

    members: "Ensemble"
    work: float


class Executor:
    """Runs the members of one ensemble. It keeps the `plan`, None before the first pass, and one row of an `example`."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.example: Any = None
        self._common_work: tuple[Plan | None, float] = (None, 0.0)  # of members that run by this plan
        self._lock = threading.RLock()  # held to keep a plan, never while the network runs

    def __getstate__(self) -> dict[str, Any]:
        return {"plan": self.plan, "example": self.example}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock(), _common_work=(None, 0.0))

    # --- one pass -------------------------------------------------------------------------------------------------

    def run(self, ensemble: "Ensemble", x: Any) -> Tensor:
        """A batch `[B, …]`, or dealt views, → `[M, B, C]`.

        Only an error that a new search can cure leads to one: rows that do not fit the plan, or sizes that do not fit each
        other where members share work. Every other error of the network is raised as it is.
        """
        plan = self.plan or self.prepare(ensemble, x)
        try:
            return self.run_plan(ensemble, x, plan)
        except RecomputationError:
            plan = replace(plan, trunk_share=1.0)  # never one after the other again
            self.plan = plan
            return self.run_plan(ensemble, x, plan)
        except RowsChangedError:
            again = self.search(ensemble, x)
        except RuntimeError as error:
            if plan.branch.kind not in ("layer", "module") or not is_size_mismatch(error):
                raise
            before, again = plan, self._search_quietly(ensemble, x, error)
            if (again.branch, again.flags) == (before.branch, before.flags):
                raise
        try:
            return self.run_plan(ensemble, x, again)
        except RowsChangedError:  # the network picks rows by their content
            self.plan = again = replace(again, branch=Branch("loop"))
            return self.run_plan(ensemble, x, again)

    def run_plan(self, ensemble: "Ensemble", x: Any, plan: Plan, probe: Any = None) -> Tensor:
        """All members on one batch by this plan: `[B, …]` or views → `[M, B, C]`."""
        if plan.writes_input:
            x = Views(pytrees.copy_tensors(x.batch)) if isinstance(x, Views) else pytrees.copy_tensors(x)
        if plan.branch.kind == "none":
            answer = select_output(pytrees.call_network(ensemble.net, x), ensemble.output)
            return (answer if ensemble.batch_axis is None else check_answer(answer, pytrees.count_rows(x))).unsqueeze(0)
        dealt = isinstance(x, Views)
        rows = count_rows(ensemble, x.select(0) if dealt else x)
        count = ensemble.count_members(ensemble.training) if probe is None else probe.count
        chosen, share = (ensemble.chosen, find_share(rows)) if probe is None else (None, None)
        current = Pass(count, rows, plan, chosen=chosen, dealt=dealt, probe=probe, share=share)
        if self.runs_apart(ensemble, plan, rows if share is None else share.rows):
            each = {index: x.select(index) if dealt else x for index in current.numbers}
            if plan.writes_input and not dealt:
                each = {index: pytrees.copy_tensors(view) for index, view in each.items()}
            return torch.stack([self.run_alone(ensemble, view, index, plan, probe) for index, view in each.items()])
        if dealt:
            entering = ensemble.join_views(x, plan)
        elif plan.branch.kind == "input":
            entering = pytrees.map_tensors(lambda leaf: pytrees.repeat_rows(leaf, current.computed), x)
        else:
            entering = x
        answer = select_output(call_in_pass(current, pytrees.call_network, ensemble.net, entering), ensemble.output)
        return check_answer(answer, current.computed * rows).unflatten(0, (current.computed, rows))

    def run_alone(self, ensemble: "Ensemble", x: Any, index: int, plan: Plan = LOOP, probe: Any = None) -> Tensor:
        """One member in a pass of its own: `[B, …]` → `[B, C]`."""
        rows = count_rows(ensemble, x)
        if probe is None:
            count = ensemble.count_members(ensemble.training)
            current = Pass(count, rows, plan, only=index, share=find_share(rows))
        else:
            current = Pass(probe.count, rows, plan, only=index, probe=probe)
        return select_output(call_in_pass(current, pytrees.call_network, ensemble.net, x), ensemble.output)

    def runs_apart(self, ensemble: "Ensemble", plan: Plan, rows: int) -> bool:
        """Whether members run one after the other on so many rows: because they must, or because it is faster.

        In training they must not if they meet in a BatchNorm: it is to see the rows of all.
        """
        if plan.branch.kind == "loop":
            return True
        if not repeats_nothing(ensemble, plan, ensemble.members) or plan.branched_size * rows < APART_SIZE:
            return False
        return not (ensemble.training and shares_batchnorm(ensemble))

    # --- the plan -------------------------------------------------------------------------------------------------

    def prepare(self, ensemble: "Ensemble", x: Any) -> Plan:
        """Find the plan, if there is none yet. The first forward pass does it by itself.

        Threads that come at once all search, and go on with the plan that is found first. They do not wait for one another: a
        hook of the network may itself wait for a prediction in another thread.
        """
        return self.plan if self.plan is not None else self.search(ensemble, x, replaces=False)

    def search(self, ensemble: "Ensemble", x: Any, replaces: bool = True) -> Plan:
        """Find a plan on two rows of this batch, and keep it; unless it `replaces` another, return the one that was kept."""
        # Not as a decorator: that would import the compiler, and with it half of what `import pluribus` takes.
        search = torch.compiler.disable(self._search) if torch.compiler.is_compiling() else self._search
        return search(ensemble, x, replaces)

    def _search(self, ensemble: "Ensemble", x: Any, replaces: bool) -> Plan:
        x = x.select(0) if isinstance(x, Views) else x
        whole = ensemble.batch_axis is None
        if not whole and pytrees.count_rows(x) == 0:
            raise ValueError("the first batch must have at least one row, got none")
        name_layers(ensemble.net)  # somebody may have put in a layer since
        try:
            plan = find_plan(ensemble, self, x, plan_whole if whole else plan_rows)
        except Exception as error:
            if not isinstance(error, PluribusError):
                if not whole and self.takes_whole(ensemble, x):
                    raise ConversionError(
                        f"the network answers these {pytrees.count_rows(x)} rows together and fails on two of them "
                        f"({' '.join(str(error).split())}): every tensor must have the batch for its first axis; if the rows "
                        "belong together, as the nodes of one graph do, pass batch_axis=None"
                    ) from error
                error.add_note("This came from the first, small pass through the converted network, in evaluation mode.")
            raise
        example = pytrees.map_tensors(lambda leaf: (leaf if whole else leaf[:1]).detach().clone(), x)
        with self._lock:
            if self.plan is not None and not replaces:
                return self.plan
            attach_branch(ensemble.net, plan.branch)
            attach_repeats(ensemble.net, plan.repeated)
            self.plan, self.example = plan, example
        return plan

    def takes_whole(self, ensemble: "Ensemble", x: Any) -> bool:
        """Whether a member answers the whole batch."""
        twin = copy_for_evaluation(ensemble)
        try:
            with torch.no_grad(), keep_random_state(twin):
                self.run_alone(twin, pytrees.copy_tensors(x), 0)
        except Exception:
            return False
        return True

    def _search_quietly(self, ensemble: "Ensemble", x: Any, error: RuntimeError) -> Plan:
        """A new search after an error; if that fails, too, the first error is the one to show."""
        try:
            return self.search(ensemble, x)
        except Exception:  # the plan is the old one still
            raise error from None

    def keep_branch(self, ensemble: "Ensemble", branch: Branch) -> Plan:
        """Let members part at `branch` from now on."""
        assert self.plan is not None
        with self._lock:
            attach_branch(ensemble.net, branch)
            self.plan = replace(self.plan, branch=branch, repeated=frozenset())
            return self.plan

    # --- how much at once -----------------------------------------------------------------------------------------

    def choose_group_size(self, ensemble: "Ensemble") -> int:
        """How many members to run at once in evaluation: all of them, or as many draws as fit with a single row."""
        members, plan = count_answering(ensemble), self.plan or Plan(Branch("input"))
        if not ensemble.sampled:
            return members
        # Of weights that are drawn there are several tensors at once: the noise, the weights, and what a product packs.
        most = max(1, CHUNK_SIZE // max(plan.branched_size, plan.answer_size, 2 * plan.drawn_size))
        return -(-members // -(-members // most))  # groups of about the same size

    def choose_chunk_rows(self, ensemble: "Ensemble") -> int:
        """How many rows to answer at once in evaluation, so that memory does not grow with M."""
        members, plan = self.choose_group_size(ensemble), self.plan or Plan(Branch("input"))
        together = members * max(plan.branched_size, plan.answer_size)
        if repeats_nothing(ensemble, plan, members):  # few, large steps cost least where a member is alone
            largest = max(plan.branched_size, plan.shared_size, members * plan.answer_size)
            rows = max(1, min(CHUNK_ROWS, 4 * CHUNK_SIZE // largest))
            apart = plan.branched_size * rows >= APART_SIZE
            return rows if apart else max(1, min(rows, 2 * CHUNK_SIZE // together))
        most = 4 * CHUNK_SIZE if ensemble.sampled and plan.trunk_share > 0.5 else CHUNK_SIZE
        return max(1, min(CHUNK_ROWS // members, math.ceil(most / max(together, plan.shared_size))))

    def split(self, ensemble: "Ensemble") -> "list[Ensemble]":
        """Ensembles of a part of the members each, to run one after the other where all at once would take too much memory."""
        members, size = count_answering(ensemble), self.choose_group_size(ensemble)
        if size == members:
            return [ensemble]
        numbers = range(members) if ensemble.chosen is None else ensemble.chosen
        return [self.choose(ensemble, numbers[first : first + size]) for first in range(0, members, size)]

    def choose(self, ensemble: "Ensemble", numbers: Sequence[int]) -> "Ensemble":
        """A copy that shares everything with this ensemble and answers by these members alone, in this order."""
        twin = copy.copy(ensemble)
        twin.chosen = tuple(numbers)
        return twin

    # --- member by member -----------------------------------------------------------------------------------------

    def list_steps(self, ensemble: "Ensemble") -> "list[Step]":
        """The members in evaluation mode one after the other, or few by few.

        Every step repeats what members have in common, so it has as many members as make their own work no less than that.
        """
        common, count = self.measure_common_work(ensemble), count_answering(ensemble)
        size = count if common == 1 else min(count, max(1, math.ceil(round(common / (1 - common), 6))))
        numbers = range(count) if ensemble.chosen is None else ensemble.chosen
        steps = [self.choose(ensemble, numbers[first : first + size]) for first in range(0, count, size)]
        return [Step(step, self.measure_work(step)) for step in steps]

    def measure_work(self, ensemble: "Ensemble") -> float:
        """The FLOPs of all members together in evaluation mode, in units of those of one member alone."""
        common = self.measure_common_work(ensemble)
        return common + count_answering(ensemble) * (1 - common)

    def measure_common_work(self, ensemble: "Ensemble") -> float:
        """The share of a member's FLOPs that members have in common, and that run once for all; it is measured once a plan."""
        if ensemble.count_members(training=False) == 1:
            return 0.0
        if self._common_work[0] is not self.plan:
            with torch.no_grad(), keep_random_state(ensemble):
                one, two = (count_call_flops(partial(self.choose(ensemble, range(k)), self.example)) for k in (1, 2))
            self._common_work = self.plan, min(max(2 - two / one, 0.0), 1.0) if one and two else 0.0
        return self._common_work[1]

    def lay_out(self, x: Any) -> Any:
        """The batch in the memory layout that the ensemble takes fastest. The numbers are the same."""
        if self.plan is None or not self.plan.channels_last or not isinstance(x, Tensor):
            return x
        return x.contiguous(memory_format=torch.channels_last)


def repeats_nothing(ensemble: "Ensemble", plan: Plan, members: int) -> bool:
    """Whether members that run one after the other repeat no work. Draws have their first layer in common."""
    return members > 1 and not ensemble.sampled and not plan.has_trunk


def count_answering(ensemble: "Ensemble", training: bool = False) -> int:
    """How many members answer: those that were chosen, or all that there are in this mode."""
    return ensemble.count_members(training) if ensemble.chosen is None else len(ensemble.chosen)


def shares_batchnorm(ensemble: "Ensemble") -> bool:
    """Whether a BatchNorm that learns sees the rows of all members."""
    own = {part for layer in ensemble.net.modules() if isinstance(layer, MemberLayer) for part in layer.modules()}
    norms = (module for module in ensemble.net.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm))
    return any(norm.training and norm not in own for norm in norms)


def is_size_mismatch(error: RuntimeError) -> bool:
    """Whether torch complains about sizes, as it does when a shared batch meets a branched one."""
    return type(error) is RuntimeError and any(word in str(error) for word in ("size", "shape", "dimension"))


def check_answer(answer: Tensor, rows: int) -> Tensor:
    """The answer, if it has so many rows."""
    if answer.dim() == 0 or answer.shape[0] != rows:
        raise ConversionError(
            f"the network must return one row for each of its {rows} inputs, got {list(answer.shape)}: "
            "the batch has to be the first axis of what goes in and of what comes out"
        )
    return answer


def count_rows(ensemble: "Ensemble", x: Any) -> int:
    """B, or one where the input is one whole."""
    return 1 if ensemble.batch_axis is None else pytrees.count_rows(x)
