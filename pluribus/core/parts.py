"""Ensembles side by side, which answer as one."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .ensemble import Ensemble
from .execution import CHUNK_SIZE, Executor, Step, count_answering
from .folding import Chain
from .losses import Criterion
from .passes import Branch, Plan
from .pytrees import Views
from .spec import Spec
from .surgery import Subject


class PartsExecutor(Executor):
    """Runs the parts of an ensemble one after the other; each part has an executor of its own."""

    def run(self, ensemble: Ensemble, x: Any) -> Tensor:
        self.prepare(ensemble, x)
        return torch.cat([part(view) for part, view in pair_with_views(ensemble, x)])

    def prepare(self, ensemble: Ensemble, x: Any) -> Plan:
        for part, view in pair_with_views(ensemble, x):
            part.executor.prepare(part, view)
        plan = self.plan
        if plan is None:
            parts = list_parts(ensemble)
            plans = [part.executor.plan for part in parts]
            last = all(each is not None and each.channels_last for each in plans)
            self.example = parts[0].executor.example
            plan = self.plan = Plan(Branch("apart"), channels_last=last)
        return plan

    def choose_chunk_rows(self, ensemble: Ensemble) -> int:
        return min(part.executor.choose_chunk_rows(part) for part in list_parts(ensemble))

    def split(self, ensemble: Ensemble) -> list[Ensemble]:
        parts = list_parts(ensemble)
        pieces = [piece for part in parts for piece in part.executor.split(part)]
        answer = max(1 if part.executor.plan is None else part.executor.plan.answer_size for part in parts)
        numbers = count_answering(ensemble) * answer * self.choose_chunk_rows(ensemble)
        if len(pieces) == len(parts) and numbers <= CHUNK_SIZE:
            return [ensemble]
        return [copy_with_parts(ensemble, [piece]) for piece in pieces]

    def choose(self, ensemble: Ensemble, numbers: Sequence[int]) -> Ensemble:
        parts, chosen = list_parts(ensemble), list[tuple[Ensemble, list[int]]]()
        owners = [(part, number) for part in parts for number in range(part.count_members(training=False))]
        for part, number in (owners[place] for place in numbers):
            if not chosen or chosen[-1][0] is not part:
                chosen.append((part, []))
            chosen[-1][1].append(number)
        return copy_with_parts(ensemble, [part.executor.choose(part, own) for part, own in chosen])

    def list_steps(self, ensemble: Ensemble) -> list[Step]:
        return [step for part in list_parts(ensemble) for step in part.executor.list_steps(part)]

    def measure_work(self, ensemble: Ensemble) -> float:
        return sum(part.executor.measure_work(part) for part in list_parts(ensemble))


def list_parts(ensemble: nn.Module) -> list[Ensemble]:
    return [part for part in ensemble.net.children() if isinstance(part, Ensemble)]  # type: ignore[union-attr]


def copy_with_parts(ensemble: Ensemble, parts: list[Ensemble]) -> Ensemble:
    """A copy that has these parts."""
    twin = copy.copy(ensemble)
    twin._modules = {**ensemble._modules, "net": nn.ModuleList(parts)}
    return twin


def pair_with_views(ensemble: Ensemble, x: Any) -> list[tuple[Ensemble, Any]]:
    """Every part, and what it sees of the batch."""
    parts = list_parts(ensemble)
    return list(zip(parts, x.batch if isinstance(x, Views) else [x] * len(parts), strict=True))


class Deep(Ensemble):
    """Ensembles side by side. Their answers follow one another on the member axis."""

    settings = ()  # each part has its own

    def __init__(self, subject: Subject, spec: Spec, parts: list[Ensemble]) -> None:
        super().__init__(subject, spec, len(parts), {}, nn.ModuleList(parts))
        self.conversion = parts[0].conversion
        self.has_penalty = parts[0].has_penalty
        self.executor = PartsExecutor()

    def count_members(self, training: bool) -> int:
        return sum(count_answering(part, training and part.training) for part in list_parts(self))

    def deal(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        """Every part deals for itself."""
        views, targets = zip(*(part.deal(x, y) for part in list_parts(self)), strict=True)
        shared = all(view is x for view in views)
        return x if shared else Views(views), torch.cat(targets)

    def objective(
        self,
        outputs: Tensor,
        targets: Tensor,
        criterion: Criterion | None = None,
        examples: int | None = None,
        temper: float = 1.0,
    ) -> Tensor:
        """The sum of the parts' own losses: each trains as it would alone."""
        parts = list_parts(self)
        sizes = [part.members for part in parts]
        pieces = zip(parts, outputs.split(sizes), targets.split(sizes), strict=True)
        return torch.stack([part.objective(out, target, criterion, examples, temper) for part, out, target in pieces]).sum()

    def penalty(self) -> Tensor:
        return torch.stack([part.penalty() for part in list_parts(self)]).sum()

    def check_optimizer(self, optimizer: torch.optim.Optimizer, clips_gradient: bool = False) -> None:
        for part in list_parts(self):
            part.check_optimizer(optimizer, clips_gradient)

    def freeze(self, samples: int | None = None) -> Ensemble:
        """A copy in which every part's draws are fixed."""
        return copy_with_parts(self, [part.freeze(samples) for part in list_parts(self)])

    @property
    def is_frozen(self) -> bool:
        return any(part.is_frozen for part in list_parts(self))

    @property
    def samples(self) -> int:
        """K of every part."""
        return list_parts(self)[0].samples

    @samples.setter
    def samples(self, samples: int) -> None:
        for part in list_parts(self):
            part.samples = samples

    def member(self, index: int) -> nn.Module:
        count = self.count_plain_members()
        if count == 0:
            return list_parts(self)[0].member(0)  # raises, with the reason
        left = index
        for part in list_parts(self):
            if 0 <= left < part.count_plain_members():
                return part.member(left)
            left -= part.count_plain_members()
        raise IndexError(f"there are members 0 to {count - 1}, got {index}")

    def count_plain_members(self) -> int:
        return sum(part.count_plain_members() for part in list_parts(self))

    def count_networks(self) -> int:
        return sum(part.count_networks() for part in list_parts(self))

    def network(self, index: int) -> nn.Module:
        owners = [(part, own) for part in list_parts(self) for own in range(part.count_networks())]
        part, own = owners[index]
        return part.network(own)

    def fold(self) -> nn.Module:
        """The parts, each folded."""
        return Chain([part.fold() for part in list_parts(self)]).eval()
