"""What an ensemble answers: the members' outputs, and everything that follows from them.

Probabilities are averaged, never logits:

    p(y | x) = (1/M) Σ_m softmax(f_m(x))_y,     log p = logsumexp_m log softmax(f_m(x)) − log M

    H[p] = I + (1/M) Σ_m H[p_m]:  total uncertainty = mutual information (members differ) + expected entropy (noise)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Predictive:
    """The members' outputs `[M, B, C, …]` and what they say together.

    One column in a classification is the logit of a yes. Half precisions are computed in single.

    >>> p = Predictive(torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]]))
    >>> p.probs
    tensor([[0.5000, 0.5000]])
    >>> p.disagreement
    tensor([1.])
    """

    outputs: Tensor
    task: Task = "classification"

    def __post_init__(self) -> None:
        if self.outputs.dim() < 2:
            raise ValueError(f"outputs must be [members, batch, …], got {list(self.outputs.shape)}")

    def __len__(self) -> int:
        """The number of rows, B."""
        return self.outputs.shape[1]

    @staticmethod
    def cat(parts: Sequence["Predictive"]) -> "Predictive":
        """Several batches as one."""
        return Predictive(torch.cat([part.outputs for part in parts], dim=1), parts[0].task)

    # --- classification -------------------------------------------------------------------------------------------

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
        """Each member's probabilities, or its regression output: `[M, B, C, …]`."""
        return self.member_log_probs.exp() if self.task == "classification" else self._values

    @property
    def log_probs(self) -> Tensor:
        """`[B, C, …]`"""
        return self.member_log_probs.logsumexp(0) - math.log(self.outputs.shape[0])

    @property
    def probs(self) -> Tensor:
        return self.log_probs.exp()

    @property
    def labels(self) -> Tensor:
        """The most probable class, `[B, …]`."""
        return self.log_probs.argmax(1)

    @property
    def confidence(self) -> Tensor:
        """The probability of that class."""
        return self.probs.amax(1)

    @property
    def entropy(self) -> Tensor:
        """Total uncertainty in nats, `[B, …]`."""
        return torch.special.entr(self.probs).sum(1)

    @property
    def expected_entropy(self) -> Tensor:
        """The members' own uncertainty, averaged."""
        return torch.special.entr(self.members).sum(2).mean(0)

    @property
    def mutual_information(self) -> Tensor:
        """What the members disagree about: never negative, zero for one member."""
        return (self.entropy - self.expected_entropy).clamp_min(0)

    @property
    def disagreement(self) -> Tensor:
        """The share of pairs of members whose labels differ, `[B, …]`; zero for one member."""
        log_probs = self.member_log_probs
        labels, count = log_probs.argmax(2), len(log_probs)
        votes = F.one_hot(labels, log_probs.shape[2]).sum(0)  # [B, …, C]
        equal = (votes * (votes - 1)).sum(-1)  # ordered pairs that agree
        return 1 - equal / max(count * (count - 1), 1) if count > 1 else torch.zeros_like(equal, dtype=self._values.dtype)

    def nll(self, targets: Tensor) -> Tensor:
        """−log p(target) of every row, `[B, …]`."""
        return -self.log_probs.gather(1, targets.long().view_as(self.labels).unsqueeze(1)).squeeze(1)

    # --- regression -----------------------------------------------------------------------------------------------

    @property
    def mean(self) -> Tensor:
        self._needs("regression")
        return self._values.mean(0)

    @property
    def variance(self) -> Tensor:
        """The members' spread about their mean (divided by M); zero for one member."""
        self._needs("regression")
        return self._values.var(0, correction=0)

    @property
    def std(self) -> Tensor:
        return self.variance.sqrt()

    # ---------------------------------------------------------------------------------------------------------------

    @property
    def _values(self) -> Tensor:
        return self.outputs if self.outputs.dtype in (torch.float, torch.double) else self.outputs.float()

    def _needs(self, task: Task) -> None:
        if self.task != task:
            raise AttributeError(f"this is a {self.task}: only a {task} has that. Convert with task={task!r}")
