"""The one contract. Nothing outside `methods/` ever asks which method it holds.

Letters mean one thing everywhere: M members (or samples), B batch, C classes or outputs.
"""

import copy
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import branching, nested, pace
from .affine import copy_to_meta
from .branching import Branch, Extent
from .describe import Change, Description, describe
from .errors import ConversionError, PluribusError, Unsupported
from .members import Converted, MemberLayer, Members, Recomputed, RowsChanged
from .modes import evaluation_mode
from .plain import Stack, select_output
from .predictive import Predictive
from .spec import Spec, require_count
from .surgery import Subject, copy_with, describe_structure

Criterion = Callable[[Tensor, Tensor], Tensor]


class Views(NamedTuple):
    """A batch dealt to the members: every tensor is `[M, B, …]`; of a deep ensemble, a tuple with each part's views."""

    batch: Any

    def of(self, member: int) -> Any:
        """What one member sees."""
        return nested.map_tensors(operator.itemgetter(member), self.batch)


class Ensemble(nn.Module):
    """A network that answers like many.

    `net` is the converted copy, `spec` what it was made by, `state` what its member layers are told in a forward pass.
    """

    reduction = "sum"
    """How the members' losses become one: "sum" trains each as it would be trained alone, "mean" as one batch."""
    penalised = False
    """Whether `penalty()` is more than zero, so that `loss` needs the size of the training set."""
    settings: tuple[str, ...] = ("samples",)
    """Attributes that may be changed after conversion; they are saved with the weights."""
    sampled = False
    """Whether members are draws: one in training, `samples` in evaluation."""

    def __init__(
        self,
        subject: Subject,
        spec: Spec,
        state: Members,
        replaced: Mapping[str, nn.Module],
        net: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.spec = spec
        self.state = state
        self.task = subject.task
        self.output = subject.output
        self._samples: int = getattr(spec, "samples", 1)
        self.branch: Branch | None = None
        self.extent = Extent()
        self._channels_last = False
        self.example: Any = None
        if net is None:
            net = copy_with(subject.net, {id(subject.modules[name]): layer for name, layer in replaced.items()})
        self.net = net
        self.changes = [Change(name, str(subject.modules[name]), type(new).__name__) for name, new in replaced.items()]
        self.left = dict(subject.left)
        self.order = subject.ran
        self.signature = describe_structure(subject.net)
        self.notes: list[str] = []
        self._base = (copy_to_meta(subject.net),)  # in a tuple, so that it is not one of our modules
        self.training = subject.net.training
        for name, layer in replaced.items():
            layer.train(subject.modules[name].training)
            if isinstance(layer, Converted):
                layer.place = name
                affine = vars(layer).get("affine")
                if affine is not None and affine.transposed is not None:
                    layer.register_forward_pre_hook(affine.take_output_size, with_kwargs=True)

    # --- answering ------------------------------------------------------------------------------------------------

    @property
    def members(self) -> int:
        """M, the first axis of the next answer."""
        if self.sampled:
            return 1 if self.training else self.samples
        return self.state.count

    @property
    def samples(self) -> int:
        """K, how many draws answer in evaluation."""
        return self._samples

    @samples.setter
    def samples(self, samples: int) -> None:
        require_count("samples", samples, 1, "an answer needs a draw")
        if self.frozen:
            raise ValueError("its draws are fixed: set samples on the ensemble that was frozen, and freeze it anew")
        self._samples = samples

    @property
    def frozen(self) -> bool:
        """Whether its draws are fixed."""
        return type(self).sampled and not self.sampled

    def forward(self, x: Any) -> Tensor:
        """A batch `[B, …]`, or dealt views, → `[M, B, C]`."""
        self.ready(x)
        self.state.count = self.members
        run = self.dealt if isinstance(x, Views) else self.together
        try:
            return run(x)
        except Recomputed:
            self.extent = self.extent._replace(trunk=True)  # never one after the other again
            return run(x)
        except RuntimeError as error:
            # Perhaps this batch takes another way through the network than the one that showed where members part.
            before = self.branch
            self.prepare(x)
            self.state.count = self.members
            if self.branch == before and not isinstance(error, RowsChanged):
                raise
        try:
            return run(x)
        except RowsChanged:  # the network picks rows by their content
            branching.place(self, Branch("loop"))
            return run(x)

    def together(self, x: Any) -> Tensor:
        """All members on the same rows: `[B, …]` → `[M, B, C]`."""
        state, entering = self.state, x
        assert self.branch is not None
        if pace.apart(self, x):
            return torch.stack([self.alone(x, index) for index in range(state.count)])
        if self.branch.kind == "input":
            entering = nested.map_tensors(lambda leaf: nested.repeat_rows(leaf, state.count), x)
        state.rows, state.only, state.dealt = nested.count_rows(x), None, False
        return self.opened(nested.call_network(self.net, entering), state.rows)

    def dealt(self, views: Views) -> Tensor:
        """All members, each with rows of its own: `[M, B, …]` → `[M, B, C]`."""
        state = self.state
        assert self.branch is not None
        if pace.apart(self, views.of(0)):
            return torch.stack([self.alone(views.of(index), index) for index in range(state.count)])
        # Nothing resets this after the pass: gradient checkpointing runs parts of it again in the backward pass.
        state.rows, state.only, state.dealt = nested.count_rows(views.of(0)), None, True
        return self.opened(
            nested.call_network(self.net, nested.map_tensors(lambda leaf: leaf.flatten(0, 1), views.batch)), state.rows
        )

    def alone(self, x: Any, index: int) -> Tensor:
        """One member in a pass of its own: `[B, C]`."""
        self.state.rows, self.state.only, self.state.dealt = nested.count_rows(x), index, False
        return select_output(nested.call_network(self.net, x), self.output)

    def opened(self, answer: Any, size: int) -> Tensor:
        """`[M·B, …]` → `[M, B, …]`."""
        answer, count = select_output(answer, self.output), self.state.count
        if answer.dim() == 0 or answer.shape[0] != count * size:
            raise ConversionError(
                f"the network must return one row for each of its {count * size} inputs, got {list(answer.shape)}: "
                "the batch has to be the first axis of what goes in and of what comes out"
            )
        return answer.unflatten(0, (count, size))

    def ready(self, x: Any) -> None:
        """Prepare, if that has not been done."""
        if self.branch is None or self.example is None:
            self.prepare(x)

    def prepare(self, x: Any) -> None:
        """Find out where members part (see `branching`). The first forward pass does it by itself."""
        # Not as a decorator: that would import the compiler, and with it half of what `import pluribus` takes.
        search = torch.compiler.disable(self.search) if torch.compiler.is_compiling() else self.search
        search(x)

    def search(self, x: Any) -> None:
        x = x.of(0) if isinstance(x, Views) else x
        if nested.count_rows(x) == 0:
            raise ValueError("the first batch must have at least one row, got none")
        try:
            self.branch = branching.find(self, x)
            self._channels_last = pace.convolves(self.net, x) and branching.runs(self, nested.take_rows(x, 2))
            self.example = nested.map_tensors(lambda leaf: leaf[:1].detach().clone(), x)
        except Exception as error:
            self.branch = None
            if not isinstance(error, PluribusError):
                error.add_note("This came from the first, small pass through the converted network, in evaluation mode.")
            raise

    @property
    def channels_last(self) -> bool:
        """Whether images had better come with their channels last in memory; known after the first pass."""
        return self._channels_last

    def check_order(self, order: list[str]) -> None:
        """Told in which order modules run. A method that depends on it says here whether it is the right one."""
        idle = [name for name, module in self.net.named_modules() if isinstance(module, Converted) and name not in order]
        if idle:
            self.remark(f"converted, but did not run in evaluation: {', '.join(idle)}. Does the network hold them elsewhere?")

    def remark(self, text: str) -> None:
        """Warn, and keep it for `describe()`."""
        if text not in self.notes:
            self.notes.append(text)
            warnings.warn(text, stacklevel=2)

    @property
    def probed(self) -> int:
        """How many members the search for the branch runs: draws are all alike, so two of them are enough."""
        return 2 if self.sampled else self.state.count

    @torch.no_grad()
    def predict(self, x: Any, batch_size: int | None = None) -> Predictive:
        """Answer in evaluation mode, without gradients, in parts, so that memory does not grow with M or B."""
        if batch_size is not None:
            require_count("batch_size", batch_size, 1, "rows are answered in parts of at least one")
        self.ready(x)
        with evaluation_mode(self):
            size = batch_size or self.at_once
            starts = range(0, max(nested.count_rows(x), 1), size)
            outputs = [self(pace.laid_out(self, nested.slice_rows(x, start, size))) for start in starts]
        return Predictive(torch.cat(outputs, dim=1), self.task)

    @property
    def at_once(self) -> int:
        """How many rows to answer at once in evaluation, so that memory does not grow with M."""
        with evaluation_mode(self):
            return pace.at_once(self)

    # --- training -------------------------------------------------------------------------------------------------

    def deal(self, x: Any, y: Tensor) -> tuple[Any, Tensor]:
        """How a training batch reaches the members → views, targets `[M, B, …]`. Here all members share it."""
        return x, y.expand(self.members, *y.shape)

    def loss(
        self, x: Any, y: Tensor, criterion: Criterion | None = None, examples: int | None = None, temper: float = 1.0
    ) -> Tensor:
        """The scalar to minimise: deal, forward, each member's criterion, plus `temper · penalty() / examples`.

        A `temper` that rises from 0 to 1 lets variational layers learn from data before the penalty weighs in.

        Under DistributedDataParallel the wrapped module must do the forward pass:

            views, targets = ensemble.deal(x, y)
            loss = ensemble.objective(parallel(views), targets)
        """
        if y.dim() == 0 or len(y) != nested.count_rows(x):
            raise ValueError(
                f"there must be a target for each of {nested.count_rows(x)} rows, got targets of shape {list(y.shape)}"
            )
        views, targets = self.deal(x, y)
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
        if criterion is None and targets.stride(0) == 0:  # the same for all members: then their mean is the mean over all rows
            total = self.criterion(outputs.flatten(0, 1), targets.flatten(0, 1))
            total = total if self.reduction == "mean" else total * len(outputs)
        else:
            criterion = criterion or self.criterion
            losses = [criterion(output, target) for output, target in zip(outputs, targets, strict=True)]
            total = torch.stack(losses).sum()
            total = total / len(losses) if self.reduction == "mean" else total
        if not self.penalised:
            return total
        if examples is None or examples < 1:
            raise ValueError(
                f"{type(self.spec).__name__} weighs its penalty against the data: pass examples=, the number of training "
                "examples, as in ensemble.loss(x, y, examples=len(dataset))"
            )
        return total + temper * self.penalty() / examples

    def criterion(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy (classes on the axis after the batch), or the mean squared error of a regression."""
        if self.task == "regression":
            return F.mse_loss(output, like(target, output))
        if output.dim() == 1 or output.shape[1] == 1:
            return F.binary_cross_entropy_with_logits(output, like(target, output))
        return F.cross_entropy(output, target)

    def penalty(self) -> Tensor:
        """A scalar that does not depend on data: the KL of variational layers, else 0."""
        return torch.zeros((), device=next(self.parameters()).device)

    @property
    def unclippable(self) -> str:
        """Why the norm of its gradient must not be clipped, if it must not."""
        return ""

    def param_groups(self) -> list[dict[str, Any]]:
        """Groups for the optimiser: what it may decay, and what it must not (factors, coefficients, rates)."""
        spared = {
            id(getattr(module, name)) for module in self.modules() if isinstance(module, Converted) for name in module.undecayed
        }
        decayed = [p for p in self.parameters() if p.requires_grad and id(p) not in spared]
        rest = [p for p in self.parameters() if p.requires_grad and id(p) in spared]
        return [{"params": decayed}] + ([{"params": rest, "weight_decay": 0.0}] if rest else [])

    # --- becoming plain again -------------------------------------------------------------------------------------

    def member(self, index: int) -> nn.Module:
        """Member `index` as a plain module, in evaluation mode: `[B, …]` → what the network returned before conversion."""
        if self.plain_members == 0:
            raise self.unsupported("plain member", "its noise is drawn anew in every pass; freeze() fixes the draws")
        if not 0 <= index < self.plain_members:
            raise IndexError(f"there are members 0 to {self.plain_members - 1}, got {index}")
        return self.plain(lambda layer: layer.plain(index))

    def fold(self) -> nn.Module:
        """A plain module with the same predictions, in evaluation mode: `[B, C]` for one member, else `[M, B, C]`.

        One network where the method allows it (as cheap as the base network, or nearly), else the members side by side.
        """
        if self.plain_members <= 1:
            return self.member(0)
        return Stack([self.member(index) for index in range(self.plain_members)], self.output).eval()

    @property
    def plain_members(self) -> int:
        """How many members there are to ask for; draws that differ from pass to pass are none."""
        return 0 if self.sampled else self.state.count

    def freeze(self, samples: int | None = None) -> "Ensemble":
        """A copy with fixed draws: it answers the same every time, and its members are plain networks.

        Weights are drawn once for each of the `samples` members; of dropout, one mask over the units, for all rows alike.
        """
        if not self.sampled:
            raise self.unsupported("draws to freeze", "its members are fixed already")
        if self.example is None:
            raise ValueError("freeze() needs to know the network's shapes: run the ensemble once on a batch first")
        twin = copy.deepcopy(self)
        with evaluation_mode(self):
            twin.samples = self.members if samples is None else samples
        twin.sampled = False
        twin.state.count, twin.state.only = twin.samples, None
        for layer in twin.net.modules():
            if isinstance(layer, MemberLayer):
                layer.freeze()
        return twin

    def plain(self, form: Callable[[Converted], nn.Module]) -> nn.Module:
        """A copy of the network with every converted layer in another form."""
        layers = [module for module in self.net.modules() if isinstance(module, Converted)]
        ours = set(self.net.modules())
        memo: dict[int, Any] = {}
        for layer in layers:
            new = form(layer)
            # A part of the ensemble itself is copied, all of them with one memo: what they tie stays tied.
            memo[id(layer)] = copy.deepcopy(new, memo) if new in ours else new
        plain = copy_with(self.net, memo)
        for module in plain.modules():
            branching.unhook(module)
        return plain.eval()

    def unsupported(self, what: str, reason: str) -> Unsupported:
        return Unsupported(f"{type(self.spec).__name__} has no {what}: {reason}")

    # --- telling --------------------------------------------------------------------------------------------------

    def describe(self, example: Any = None) -> Description:
        """What was changed, what was left and why, where members part, parameters and FLOPs.

        FLOPs need an input: `example`, or any batch that the ensemble has seen.
        """
        return describe(self, self.base, self.example if example is None else example)

    @property
    def base(self) -> nn.Module:
        """The network as it was, without its numbers (on the meta device)."""
        return self._base[0]

    def extra_repr(self) -> str:
        return f"{self.spec}, task={self.task!r}"


def like(target: Tensor, output: Tensor) -> Tensor:
    """The target in the shape and dtype of the output: `[B]` against `[B, 1]` would broadcast to `[B, B]`."""
    if [n for n in target.shape if n != 1] != [n for n in output.shape if n != 1]:
        raise ValueError(f"targets must have the shape of the outputs, {list(output.shape)}, got {list(target.shape)}")
    return target.view_as(output).to(output.dtype)
