"""What an ensemble answers: the members' outputs, or their averages alone, and everything that follows from them.

Probabilities are averaged, never logits:

    p(y | x) = (1/M) Σ_m softmax(f_m(x))_y,     log p = logsumexp_m log softmax(f_m(x)) − log M

    H[p] = I + (1/M) Σ_m H[p_m]:  total uncertainty = mutual information (members differ) + expected entropy (noise)

Of a regression the mixture of the members, of means μ_m and noise σ_m², has the mean μ̄ = (1/M) Σ_m μ_m and the variance

    (1/M) Σ_m σ_m²  +  (1/M) Σ_m (μ_m − μ̄)²:  total variance = noise + spread
"""

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor

from .row_buffer import RowBuffer
from .votes import compute_disagreement, count_votes

Task = Literal["classification", "regression"]
BLOCK_SIZE = 2**19
"""Numbers of the members' outputs from which on averages are computed in blocks of rows: no second tensor of that size."""


class Answer(abc.ABC):
    """What the members of an ensemble say together about B rows: all that follows from their averages."""

    task: Task

    @abc.abstractmethod
    def __len__(self) -> int:
        """The number of rows, B."""

    @property
    def is_finite(self) -> Tensor:
        """Which rows have an answer, `[B]`: their probabilities, or the mean of their regression outputs, are numbers.

        >>> p = Predictive(torch.tensor([[[2.0, 0.0], [torch.nan, 0.0]]]))
        >>> p.is_finite, p.labels
        (tensor([ True, False]), tensor([ 0, -1]))
        """
        finite = (self.probs if self.task == "classification" else self.mean).isfinite()
        return finite if finite.dim() == 1 else finite.flatten(1).all(1)

    # --- classification -------------------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def log_probs(self) -> Tensor:
        """`[B, C, …]`"""

    @property
    @abc.abstractmethod
    def expected_entropy(self) -> Tensor:
        """The members' own uncertainty in nats, averaged, `[B, …]`."""

    @property
    @abc.abstractmethod
    def disagreement(self) -> Tensor:
        """The share of pairs of members whose labels differ, `[B, …]`; zero for one member, NaN without a finite answer."""

    @property
    def probs(self) -> Tensor:
        """`[B, C, …]`"""
        return self.log_probs.exp()

    @property
    def labels(self) -> Tensor:
        """The most probable class, `[B, …]`; −1, which is none, where the answer is not finite."""
        log_probs = self.log_probs
        return log_probs.argmax(1).masked_fill(log_probs.isnan().any(1), -1)

    @property
    def confidence(self) -> Tensor:
        """The probability of that class."""
        return self.probs.amax(1)

    @property
    def entropy(self) -> Tensor:
        """Total uncertainty in nats, `[B, …]`."""
        return torch.special.entr(self.probs).sum(1)

    @property
    def mutual_information(self) -> Tensor:
        """What the members disagree about: never negative, zero for one member."""
        return (self.entropy - self.expected_entropy).clamp_min(0)

    def nll(self, targets: Tensor) -> Tensor:
        """−log p(target) of every row, `[B, …]`."""
        log_probs = self.log_probs
        return -log_probs.gather(1, targets.long().view(log_probs[:, :1].shape)).squeeze(1)

    # --- regression -----------------------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def mean(self) -> Tensor:
        """`[B, C, …]`"""

    @property
    @abc.abstractmethod
    def has_noise(self) -> bool:
        """Whether the members of a regression predict the noise of its targets."""

    @property
    @abc.abstractmethod
    def noise_variance(self) -> Tensor:
        """The variance of the noise in the targets, the mean of what the members predict; zero if they do not, `[B, C, …]`."""

    @property
    @abc.abstractmethod
    def spread_variance(self) -> Tensor:
        """The variance of the members' means about their mean (divided by M); zero for one member, `[B, C, …]`."""

    @property
    def variance(self) -> Tensor:
        """All that is known to be unsure: noise and spread, `[B, C, …]`."""
        return self.spread_variance + self.noise_variance if self.has_noise else self.spread_variance

    @property
    def std(self) -> Tensor:
        """The root of the whole variance."""
        return self.variance.sqrt()

    # ---------------------------------------------------------------------------------------------------------------

    def _needs(self, task: Task) -> None:
        if self.task != task:
            raise AttributeError(f"this is a {self.task}: only a {task} has that. Convert with task={task!r}")


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

    def __post_init__(self) -> None:
        if self.outputs.dim() < 2:
            raise ValueError(f"outputs must be [members, batch, …], got {list(self.outputs.shape)}")
        if self.has_noise and (self.task != "regression" or self.outputs.dim() < 3 or self.outputs.shape[2] % 2):
            raise ValueError(
                f"outputs with noise must be means and variances of a regression, [members, batch, 2C, …], got "
                f"{list(self.outputs.shape)} of a {self.task}"
            )

    def __len__(self) -> int:
        return self.outputs.shape[1]

    @staticmethod
    def cat(parts: Sequence["Predictive"]) -> "Predictive":
        """Several batches as one."""
        return replace(parts[0], outputs=torch.cat([part.outputs for part in parts], dim=1))

    @property
    def member_log_probs(self) -> Tensor:
        """`[M, B, C, …]`"""
        self._needs("classification")
        logits = self._values if self.outputs.dim() > 2 else self._values.unsqueeze(2)
        if logits.shape[2] == 1:  # also where it is infinite
            return torch.cat([F.logsigmoid(-logits), F.logsigmoid(logits)], dim=2)
        return F.log_softmax(logits, dim=2)

    @property
    def members(self) -> Tensor:
        """Each member's probabilities, or its regression output, the mean: `[M, B, C, …]`."""
        if self.task == "classification":
            return self.member_log_probs.exp()
        return split_outputs(self._values)[0] if self.has_noise else self._values

    @property
    def member_noise(self) -> Tensor:
        """The variance of the noise that each member of a regression predicts, `[M, B, C, …]`; zero if none does."""
        self._needs("regression")
        return split_outputs(self._values)[1] if self.has_noise else torch.zeros_like(self._values)

    @property
    def log_probs(self) -> Tensor:
        return self._map_blocks(lambda block: block.member_log_probs.logsumexp(0)) - math.log(len(self.outputs))

    @property
    def expected_entropy(self) -> Tensor:
        return self._map_blocks(lambda block: torch.special.entr(block.members).sum(2).mean(0))

    @property
    def disagreement(self) -> Tensor:
        votes = self._map_blocks(lambda block: count_votes(block.member_log_probs))
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

    def rescale(self, factor: float, offset: float) -> "Predictive":
        """The prediction of a regression in other units, `factor · y + offset`, in double precision.

        >>> Predictive(torch.tensor([[[1.0, 4.0]]]), "regression", has_noise=True).rescale(10, 5).outputs
        tensor([[[ 15., 400.]]], dtype=torch.float64)
        """
        self._needs("regression")
        if not self.has_noise:
            return replace(self, outputs=self.outputs.double() * factor + offset)
        mean, variance = split_outputs(self.outputs.double())
        return replace(self, outputs=torch.cat([mean * factor + offset, variance * factor**2], 2))

    def summarize(self) -> "PredictiveSummary":
        """The averages alone."""
        names = ("log_probs", "expected_entropy", "disagreement")
        if self.task == "regression":
            names = ("mean", "spread_variance", *(("noise_variance",) if self.has_noise else ()))
        return PredictiveSummary(len(self.outputs), {name: getattr(self, name) for name in names}, self.task)

    @property
    def _dtype(self) -> torch.dtype:
        return self.outputs.dtype if self.outputs.dtype in (torch.float, torch.double) else torch.float

    @property
    def _values(self) -> Tensor:
        return self.outputs.to(self._dtype)

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

    It has the names of a `Predictive`, but for `outputs`, `members`, `member_log_probs` and `member_noise`. `averages` holds
    log_probs, expected_entropy and disagreement of a classification, mean and spread_variance of a regression, and its
    noise_variance if the members predict it.
    """

    count: int
    averages: Mapping[str, Tensor] = field(repr=False)
    task: Task = "classification"

    def __len__(self) -> int:
        return len(next(iter(self.averages.values())))

    @staticmethod
    def cat(parts: Sequence["PredictiveSummary"]) -> "PredictiveSummary":
        """Several batches as one."""
        averages = {name: torch.cat([part.averages[name] for part in parts]) for name in parts[0].averages}
        return PredictiveSummary(parts[0].count, averages, parts[0].task)

    @property
    def log_probs(self) -> Tensor:
        return self._get("log_probs", "classification")

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
        found = {name: values.double() * factor**2 for name, values in self.averages.items() if name != "mean"}
        return replace(self, averages={"mean": self.mean.double() * factor + offset} | found)

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

    def _get(self, name: str, task: Task) -> Tensor:
        self._needs(task)
        return self.averages[name]

    def _refuse(self, name: str) -> AttributeError:
        return AttributeError(f"a prediction without members has no {name}: call predict(x), with members=True, to keep them")


def split_outputs(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances, `[M, B, C, …]` each, of outputs `[M, B, 2C, …]`."""
    mean, variance = outputs.chunk(2, 2)
    return mean, variance
