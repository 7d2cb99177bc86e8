"""The one contract. Nothing outside `methods/` ever asks which method it holds.

Letters mean one thing everywhere: M members (or samples), B batch, C classes or outputs.
"""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from . import pytrees
from .affine import copy_to_meta
from .answering import Answering
from .describe import Change, Conversion, Description, describe
from .errors import Unsupported
from .execution import Executor, count_answering
from .folding import Stack, copy_plain, freeze_layers, prepare_member
from .losses import Criterion, check_examples, combine_losses, compute_loss
from .member_targets import MemberTargets, deal_targets
from .members import Converted, name_layers
from .passes import Plan
from .pytrees import Views
from .spec import Spec, require_count
from .surgery import Subject, carry_hooks_to_converted, copy_with, describe_structure
from .target_distribution import find_distribution


class Ensemble(Answering, nn.Module):
    """A network that answers like many.

    `net` is the converted copy, `spec` what it was made by, `conversion` what was changed, `executor` how the members run.
    """

    reduction = "sum"
    """How the members' losses become one: "sum" trains each as it would be trained alone, "mean" as one batch."""
    has_penalty = False
    """Whether `penalty()` is more than zero, so that `loss` needs the size of the training set."""
    settings: tuple[str, ...] = ("samples",)
    """Attributes that may be changed after conversion; they are saved with the weights."""
    sampled = False
    """Whether members are draws: one in training, `samples` in evaluation."""
    chosen: tuple[int, ...] | None = None
    """Which members answer, in a copy that `predict` runs; None in every other."""

    def __init__(
        self,
        subject: Subject,
        spec: Spec,
        members: int,
        replaced: Mapping[str, nn.Module],
        net: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.task = subject.task
        self.output = subject.output
        self.class_axis = subject.class_axis
        self.batch_axis = subject.batch_axis
        self.distribution = find_distribution(subject.net)
        self.executor = Executor()
        self._count = members
        self._samples: int = getattr(spec, "samples", 1)
        memo: dict[int, Any] = {}
        if net is None:
            net = copy_with(subject.net, {id(subject.modules[name]): layer for name, layer in replaced.items()}, memo)
        self.net = net
        changes = [Change(name, str(subject.modules[name]), type(new).__name__) for name, new in replaced.items()]
        structure = describe_structure(subject.net)
        self.conversion = Conversion(changes, dict(subject.left), subject.ran, structure, copy_to_meta(subject.net))
        self.training = subject.net.training
        for name, layer in replaced.items():
            layer.train(subject.modules[name].training)
            if isinstance(layer, Converted):
                carry_hooks_to_converted(subject.modules[name], layer, memo)
        if replaced:
            name_layers(net)

    # --- answering ------------------------------------------------------------------------------------------------

    @property
    def members(self) -> int:
        """M, the first axis of the next answer."""
        return count_answering(self, self.training)

    def count_members(self, training: bool) -> int:
        """M in training or in evaluation mode."""
        if self.sampled:
            return 1 if training else self.samples
        return self._count

    @property
    def samples(self) -> int:
        """K, how many draws answer in evaluation."""
        return self._samples

    @samples.setter
    def samples(self, samples: int) -> None:
        require_count("samples", samples, 1, "an answer needs a draw")
        if self.is_frozen:
            raise ValueError("its draws are fixed: set samples on the ensemble that was frozen, and freeze it anew")
        self._samples = samples

    @property
    def is_frozen(self) -> bool:
        """Whether its draws are fixed."""
        return type(self).sampled and not self.sampled

    def forward(self, x: Any) -> Tensor:
        """A batch `[B, …]`, or dealt views, → `[M, B, C]`."""
        return self.executor.run(self, x)

    # --- training -------------------------------------------------------------------------------------------------

    def deal(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        """How a training batch reaches the members → views, targets `[M, B, …]`. Here all members share it."""
        return x, y.expand(self.members, *y.shape)

    def loss(
        self,
        x: Any,
        y: Tensor | MemberTargets,
        criterion: Criterion | None = None,
        examples: int | None = None,
        temper: float = 1.0,
    ) -> Tensor:
        """The scalar to minimise: deal, forward, each member's criterion, plus `temper · penalty() / examples`.

        `y` holds a target for each row, `[B]`; of a classification also the probabilities of its classes, `[B, C]`. Targets of
        each member's own come as `MemberTargets`.

        A `temper` that rises from 0 to 1 lets variational layers learn from data before the penalty weighs in.

        Under DistributedDataParallel the wrapped module must do the forward pass:

            views, targets = ensemble.deal(x, y)
            loss = ensemble.objective(parallel(views), targets)
        """
        views, targets = deal_targets(self, x, y)
        return self.objective(self(views), targets, criterion, examples, temper)

    def objective(
        self,
        outputs: Tensor,
        targets: Tensor,
        criterion: Criterion | None = None,
        examples: int | None = None,
        temper: float = 1.0,
    ) -> Tensor:
        """The loss of outputs `[M, B, C]` against targets `[M, B, …]`."""
        total = combine_losses(criterion, self.criterion, outputs, targets, self.reduction)
        if not self.has_penalty:
            return total
        return total + temper * self.penalty() / check_examples(examples, self.spec)

    def criterion(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy, or the mean squared error of a regression. A target of −100 is left out of the mean.

        Where the members predict the noise of the targets it is the β-NLL of their means and variances, `[B, 2C, …]`, and where
        they predict quantiles the squared error and the pinball losses of `[B, (1 + Q)C, …]`.
        """
        if self.distribution is not None:
            return self.distribution.compute_loss(output, target)
        return compute_loss(self.task, output, target, class_axis=self.class_axis)

    def penalty(self) -> Tensor:
        """A scalar that does not depend on data: the KL of variational layers, else 0."""
        return torch.zeros((), device=next(self.parameters()).device)

    def param_groups(self) -> list[dict[str, Any]]:
        """Groups for the optimiser: parameters that it may decay, and those that it must not (factors, coefficients, rates)."""
        spared = {
            id(getattr(module, name)) for module in self.modules() if isinstance(module, Converted) for name in module.undecayed
        }
        decayed = [p for p in self.parameters() if p.requires_grad and id(p) not in spared]
        rest = [p for p in self.parameters() if p.requires_grad and id(p) in spared]
        return [{"params": decayed}] + ([{"params": rest, "weight_decay": 0.0}] if rest else [])

    def check_optimizer(self, optimizer: torch.optim.Optimizer, clips_gradient: bool = False) -> None:
        """Raise `Unsupported` if this optimiser, or gradient clipping, would not train the method as defined.

        `pluribus.fit` calls it; in a loop of your own call it once before training.
        """

    # --- becoming plain again -------------------------------------------------------------------------------------

    def member(self, index: int) -> nn.Module:
        """Member `index` as a plain module in evaluation mode: `[B, …]` → `[B, C]`.

        Raises `IndexError` if there is no such member, `Unsupported` where members are drawn anew in every pass.
        """
        count = self.count_plain_members()
        if count == 0:
            raise self.refuse("plain member", "its noise is drawn anew in every pass; freeze() fixes the draws")
        if not 0 <= index < count:
            raise IndexError(f"there are members 0 to {count - 1}, got {index}")
        return prepare_member(copy_plain(self.net, lambda layer: layer.to_plain(index)), self.output)

    def fold(self) -> nn.Module:
        """The cheapest plain module with the same predictions, in evaluation mode: `[B, …]` → `[M, B, C]`.

        One network where the method allows it (as cheap as the base network, or nearly), else the members side by side.
        Raises `Unsupported` with the reason where there is none.
        """
        return Stack([self.member(index) for index in range(max(1, self.count_plain_members()))]).eval()

    def count_plain_members(self) -> int:
        """How many members there are to ask for; draws that differ from pass to pass are none."""
        return 0 if self.sampled else self._count

    def count_networks(self) -> int:
        """How many sets of weights it has for the network that was converted; draws about one mean have one."""
        return 1 if type(self).sampled else self._count

    def network(self, index: int) -> nn.Module:
        """That network with set `index` of them, without noise. `pluribus.restore` chooses the set."""
        return copy_plain(self.net, lambda layer: layer.to_noiseless(index))

    def freeze(self, samples: int | None = None) -> "Ensemble":
        """A copy with fixed draws: it answers the same every time, and its members are plain networks.

        Weights are drawn once for each of the `samples` members; of dropout, one mask over the units, for all rows alike.
        """
        if not self.sampled:
            raise self.refuse("draws to freeze", "its members are fixed already")
        plan = self.executor.plan
        if plan is None:
            raise ValueError("freeze() needs to know the network's shapes: run the ensemble once on a batch first")
        twin = copy.deepcopy(self)
        twin.samples = self.count_members(training=False) if samples is None else samples
        twin.sampled, twin._count = False, twin.samples
        freeze_layers(twin.net, twin._count, plan)
        return twin

    def refuse(self, what: str, reason: str) -> Unsupported:
        """The error to raise where the method has no such form."""
        return Unsupported(f"{type(self.spec).__name__} has no {what}: {reason}")

    # --- what a method may add to the search for the plan ---------------------------------------------------------

    def count_probed(self) -> int:
        """How many members the search runs: draws are all alike, so two of them are enough."""
        return 2 if self.sampled else self._count

    def check_order(self, order: list[str]) -> None:
        """Called with the names of the modules in the order in which they run. A method that depends on it checks it here."""
        idle = [name for name, module in self.net.named_modules() if isinstance(module, Converted) and name not in order]
        if idle:
            self.conversion.remark(
                f"converted, but did not run in evaluation: {', '.join(idle)}. Does the network hold them elsewhere?"
            )

    def complete_plan(self, plan: Plan, batch: Any) -> Plan:
        """Called with the plan that was found, in evaluation mode. A method may check it, or return another."""
        return plan

    def join_views(self, views: Views, plan: Plan) -> Any:
        """How dealt views enter the network: `[M, B, …]` → `[M·B, …]`."""
        return pytrees.map_tensors(lambda leaf: leaf.flatten(0, 1), views.batch)

    # --- description ----------------------------------------------------------------------------------------------

    def describe(self, example: Any = None) -> Description:
        """What was changed, what was left and why, where members part, parameters and FLOPs.

        FLOPs need an input: `example`, or any batch that the ensemble has seen.
        """
        return describe(self, self.executor.example if example is None else example)

    def extra_repr(self) -> str:
        return f"{self.spec}, task={self.task!r}"
