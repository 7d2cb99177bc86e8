"""What an ensemble answers: the members' outputs, or their averages alone, and everything that follows from them.

Probabilities are averaged, never logits:

    p(y | x) = (1/M) Σ_m softmax(f_m(x))_y,     log p = logsumexp_m log softmax(f_m(x)) − log M

    H[p] = I + (1/M) Σ_m H[p_m]:  total uncertainty = mutual information (members differ) + expected entropy (noise)

Of a regression the mixture of the members, of means μ_m and noise σ_m², has the mean μ̄ = (1/M) Σ_m μ_m and the variance

    (1/M) Σ_m σ_m²  +  (1/M) Σ_m (μ_m − μ̄)²:  total variance = noise + spread
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from .answer import Answer, ClassAxis, Task
from .row_buffer import RowBuffer
from .votes import compute_disagreement, count_votes

BLOCK_SIZE = 2**19
"""Numbers of the members' outputs from which on averages are computed in blocks of rows: no second tensor of that size."""


@dataclass(frozen=True, eq=False)
class Predictive(Answer):
    """The members' outputs `[M, B, C, …]` and what they say together.

    One column in a classification is the logit of a yes. Half precisions are computed in single. A network that overflows,
    or has diverged, answers with NaN: `is_finite` says to which rows. They have no label.

    >>> p = Predictive(torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]]))
    >>> p.probs
    tensor([[0.5000, 0.5000]])
    >>> p.disagreement
    tensor([1.])
    """

    outputs: Tensor
    task: Task = "classification"
    has_noise: bool = False
    """Whether outputs are means and variances, `[M, B, 2C, …]`."""
    quantile_levels: tuple[float, ...] = ()
    """Of which quantiles they are, beside means: `[M, B, (1 + Q)C, …]`."""
    class_axis: ClassAxis = 1
    """−1 if the classes are on the last axis, `[M, B, …, C]`, as language models have them."""

    def __post_init__(self) -> None:
        if self.outputs.dim() < 2:
            raise ValueError(f"outputs must be [members, batch, …], got {list(self.outputs.shape)}")
        if self.has_noise and (self.task != "regression" or self.outputs.dim() < 3 or self.outputs.shape[2] % 2):
            raise ValueError(
                f"outputs with noise must be means and variances of a regression, [members, batch, 2C, …], got "
                f"{list(self.outputs.shape)} of a {self.task}"
            )
        require_class_axis(self.class_axis, self.task)
        times = 1 + len(self.quantile_levels)
        if times > 1 and (self.task != "regression" or self.outputs.dim() < 3 or self.outputs.shape[2] % times):
            raise ValueError(
                f"outputs with {times - 1} quantiles must be means and these of a regression, [members, batch, {times}C, …], "
                f"got {list(self.outputs.shape)} of a {self.task}"
            )
        if times > 1 and self.has_noise:
            raise ValueError("outputs hold variances or quantiles beside the means: has_noise excludes quantile_levels")

    def __len__(self) -> int:
        return self.outputs.shape[1]

    @staticmethod
    def cat(parts: Sequence["Predictive"]) -> "Predictive":
        """Several batches as one."""
        return replace(parts[0], outputs=torch.cat([part.outputs for part in parts], dim=1))

    def arrange_classes(self) -> "Predictive":
        if self.class_axis == 1:
            return self
        return replace(self, outputs=self.outputs.movedim(-1, 2) if self.outputs.dim() > 2 else self.outputs, class_axis=1)

    def select_positions(self, which: Tensor) -> "Predictive":
        self._needs("classification")
        outputs = self.arrange_classes().outputs
        outputs = outputs.movedim(2, -1) if outputs.dim() > 2 else outputs
        check_positions(which, outputs.shape[1:-1] if outputs.dim() > 2 else outputs.shape[1:])
        return replace(self, outputs=outputs[:, which], class_axis=1)

    @property
    def member_log_probs(self) -> Tensor:
        """`[M, B, C, …]`"""
        self._needs("classification")
        if self.class_axis != 1:
            return self.arrange_classes().member_log_probs.movedim(2, -1)
        logits = self._values if self.outputs.dim() > 2 else self._values.unsqueeze(2)
        if logits.shape[2] == 1:  # also where it is infinite
            return torch.cat([F.logsigmoid(-logits), F.logsigmoid(logits)], dim=2)
        return F.log_softmax(logits, dim=2)

    @property
    def members(self) -> Tensor:
        """Each member's probabilities, or its regression output, the mean: `[M, B, C, …]`."""
        if self.task == "classification":
            return self.member_log_probs.exp()
        return self._blocks[0]

    @property
    def member_noise(self) -> Tensor:
        """The variance of the noise that each member of a regression predicts, `[M, B, C, …]`; zero if none does."""
        self._needs("regression")
        return self._blocks[1] if self.has_noise else torch.zeros_like(self._blocks[0])

    @property
    def member_quantiles(self) -> Tensor:
        """The quantiles that each member of a regression predicts, `[Q, M, B, C, …]`: those of one level are `[M, B, C, …]`."""
        self._needs_quantiles()
        return torch.stack(self._blocks[1:])

    @property
    def log_probs(self) -> Tensor:
        return self._map_blocks(lambda block: block.member_log_probs.logsumexp(0)) - math.log(len(self.outputs))

    @property
    def expected_entropy(self) -> Tensor:
        return self._map_blocks(lambda block: torch.special.entr(block.arrange_classes().members).sum(2).mean(0))

    @property
    def disagreement(self) -> Tensor:
        votes = self._map_blocks(lambda block: count_votes(block.arrange_classes().member_log_probs))
        return compute_disagreement(votes, len(self.outputs), self._dtype)

    @property
    def mean(self) -> Tensor:
        self._needs("regression")
        return self._map_blocks(lambda block: block.members.mean(0))

    @property
    def noise_variance(self) -> Tensor:
        return self._map_blocks(lambda block: block.member_noise.mean(0))

    @property
    def spread_variance(self) -> Tensor:
        self._needs("regression")
        return self._map_blocks(lambda block: block.members.var(0, correction=0))

    @property
    def quantiles(self) -> Tensor:
        self._needs_quantiles()
        return self._map_blocks(lambda block: block.member_quantiles.mean(1).movedim(0, 1)).movedim(1, 0)

    def rescale(self, factor: float, offset: float) -> "Predictive":
        """The prediction of a regression in other units, `factor · y + offset`, in double precision; the factor is positive.

        >>> Predictive(torch.tensor([[[1.0, 4.0]]]), "regression", has_noise=True).rescale(10, 5).outputs
        tensor([[[ 15., 400.]]], dtype=torch.float64)
        """
        self._needs("regression")
        if not self.has_noise:
            return replace(self, outputs=self.outputs.double() * factor + offset)
        mean, variance = self.outputs.double().chunk(2, 2)
        return replace(self, outputs=torch.cat([mean * factor + offset, variance * factor**2], 2))

    def summarize(self) -> "PredictiveSummary":
        """The averages alone."""
        names = ("mean", "spread_variance") if self.task == "regression" else ("log_probs", "expected_entropy", "disagreement")
        found = {name: getattr(self.arrange_classes(), name) for name in names}
        if self.has_noise:
            found["noise_variance"] = self.noise_variance
        if self.quantile_levels:
            found["quantiles"] = self.quantiles.movedim(0, 1)
        return PredictiveSummary(len(self.outputs), found, self.task, self.quantile_levels, self.class_axis)

    @property
    def _dtype(self) -> torch.dtype:
        return self.outputs.dtype if self.outputs.dtype in (torch.float, torch.double) else torch.float

    @property
    def _values(self) -> Tensor:
        return self.outputs.to(self._dtype)

    @property
    def _blocks(self) -> tuple[Tensor, ...]:
        """Means, and whatever else the members of a regression predict, `[M, B, C, …]` each."""
        count = 2 if self.has_noise else 1 + len(self.quantile_levels)
        return self._values.chunk(count, 2) if count > 1 else (self._values,)

    def _map_blocks(self, compute: Callable[["Predictive"], Tensor]) -> Tensor:
        """`compute`, which has an answer for every row, in blocks of rows if the outputs are many."""
        is_whole = torch.compiler.is_compiling() or self.outputs.requires_grad  # a traced number of rows has no size yet
        if is_whole or self.outputs.numel() <= BLOCK_SIZE or len(self) < 2:
            return compute(self)
        buffer, rows = RowBuffer(0, len(self)), max(1, BLOCK_SIZE * len(self) // self.outputs.numel())
        for block in self.outputs.split(rows, dim=1):
            values = compute(replace(self, outputs=block))
            buffer.take_rows(values.shape, values).copy_(values)
        return buffer.get_rows()


@dataclass(frozen=True, eq=False)
class PredictiveSummary(Answer):
    """The averages of `count` members over B rows, without the members: `ensemble.predict(x, members=False)`.

    It has the names of a `Predictive`, but for `outputs`, `members` and those that begin with `member_`. `averages` holds
    log_probs, expected_entropy and disagreement of a classification, mean and spread_variance of a regression, and its
    noise_variance or its quantiles `[B, Q, C, …]` if the members predict them.
    """

    count: int
    averages: Mapping[str, Tensor] = field(repr=False)
    task: Task = "classification"
    quantile_levels: tuple[float, ...] = ()
    class_axis: ClassAxis = 1
    """Where `log_probs` and `probs` have the classes; `averages` have them on the axis after the batch."""

    def __len__(self) -> int:
        return len(next(iter(self.averages.values())))

    @staticmethod
    def cat(parts: Sequence["PredictiveSummary"]) -> "PredictiveSummary":
        """Several batches as one."""
        averages = {name: torch.cat([part.averages[name] for part in parts]) for name in parts[0].averages}
        return replace(parts[0], averages=averages)

    def arrange_classes(self) -> Self:
        return self if self.class_axis == 1 else replace(self, class_axis=1)

    def select_positions(self, which: Tensor) -> Self:
        self._needs("classification")
        check_positions(which, self.expected_entropy.shape)
        averages = {name: values[which] for name, values in self.averages.items() if name != "log_probs"}
        averages["log_probs"] = self.averages["log_probs"].movedim(1, -1)[which]
        return replace(self, averages=averages, class_axis=1)

    @property
    def log_probs(self) -> Tensor:
        log_probs = self._get("log_probs", "classification")
        return log_probs if self.class_axis == 1 else log_probs.movedim(1, -1)

    @property
    def expected_entropy(self) -> Tensor:
        return self._get("expected_entropy", "classification")

    @property
    def disagreement(self) -> Tensor:
        return self._get("disagreement", "classification")

    @property
    def mean(self) -> Tensor:
        return self._get("mean", "regression")

    @property
    def has_noise(self) -> bool:
        return "noise_variance" in self.averages

    @property
    def noise_variance(self) -> Tensor:
        return self._get("noise_variance", "regression") if self.has_noise else torch.zeros_like(self.spread_variance)

    @property
    def spread_variance(self) -> Tensor:
        return self._get("spread_variance", "regression")

    def rescale(self, factor: float, offset: float) -> "PredictiveSummary":
        """The prediction of a regression in other units, `factor · y + offset`, in double precision."""
        self._needs("regression")
        places = ("mean", "quantiles")  # the others are variances
        averages = {
            name: values.double() * factor + offset if name in places else values.double() * factor**2
            for name, values in self.averages.items()
        }
        return replace(self, averages=averages)

    @property
    def quantiles(self) -> Tensor:
        self._needs_quantiles()
        return self.averages["quantiles"].movedim(1, 0)

    @property
    def outputs(self) -> NoReturn:
        raise self._refuse("outputs")

    @property
    def members(self) -> NoReturn:
        raise self._refuse("members")

    @property
    def member_log_probs(self) -> NoReturn:
        raise self._refuse("member_log_probs")

    @property
    def member_noise(self) -> NoReturn:
        raise self._refuse("member_noise")

    @property
    def member_quantiles(self) -> NoReturn:
        raise self._refuse("member_quantiles")

    def _get(self, name: str, task: Task) -> Tensor:
        self._needs(task)
        return self.averages[name]

    def _refuse(self, name: str) -> AttributeError:
        return AttributeError(f"a prediction without members has no {name}: call predict(x), with members=True, to keep them")


def require_class_axis(class_axis: int, task: Task) -> None:
    """Raise ValueError unless the axis is one of those that classes may be on."""
    if class_axis not in (1, -1) or isinstance(class_axis, bool):
        raise ValueError(f"class_axis must be 1, the axis after the batch, or -1, the last one, got {class_axis!r}")
    if class_axis != 1 and task != "classification":
        raise ValueError(f"class_axis= says where the classes are, and this is a {task}: leave it out")


def check_positions(which: Tensor, shape: Sequence[int]) -> None:
    """Raise ValueError unless there is a yes or a no for every position."""
    if which.dtype != torch.bool or which.shape != torch.Size(shape):
        raise ValueError(
            f"positions are selected by a boolean mask of the shape {list(shape)}, got {which.dtype} of {list(which.shape)}"
        )
