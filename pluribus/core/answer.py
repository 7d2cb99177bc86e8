"""What any answer of an ensemble says about its rows, whether the members are kept or only their averages."""

import abc
from typing import Literal, Self

import torch
from torch import Tensor

Task = Literal["classification", "regression"]
ClassAxis = Literal[1, -1]
"""Where the classes of a network's output are: on the axis after the batch, `[B, C, …]`, or on the last one, `[B, …, C]`."""
IGNORED = -100
"""The target of a place that does not count, as in torch's cross-entropy."""


class Answer(abc.ABC):
    """What the members of an ensemble say together about B rows: all that follows from their averages."""

    task: Task
    class_axis: ClassAxis
    """Where the classes are: what is `[B, C, …]` below is `[B, …, C]` if it is −1."""
    quantile_levels: tuple[float, ...]
    """Which quantiles of its targets the members of a regression predict, lowest first; empty if none."""

    @abc.abstractmethod
    def __len__(self) -> int:
        """The number of rows, B."""

    @property
    def is_finite(self) -> Tensor:
        """Which rows have an answer, `[B]`: their probabilities, or the means and quantiles of a regression, are numbers.

        >>> from pluribus import Predictive
        >>> p = Predictive(torch.tensor([[[2.0, 0.0], [torch.nan, 0.0]]]))
        >>> p.is_finite, p.labels
        (tensor([ True, False]), tensor([ 0, -1]))
        """
        finite = (self.probs if self.task == "classification" else self.mean).isfinite()
        if self.quantile_levels:
            finite = finite & self.quantiles.isfinite().all(0)
        return finite if finite.dim() == 1 else finite.flatten(1).all(1)

    # --- classification -------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def arrange_classes(self) -> Self:
        """The same answer with classes on the axis after the batch, `[B, C, …]`."""

    @abc.abstractmethod
    def select_positions(self, which: Tensor) -> Self:
        """Some positions of some rows, each as a row of its own: by a mask `[B, …]` the answer to N rows, `[N, C]`.

        So every metric and rule for rows serves tokens or pixels: `known = y != -100` selects those that have a target.

        >>> from pluribus import Predictive
        >>> p = Predictive(torch.zeros(2, 4, 6, 10), class_axis=-1)  # two members, four texts of six tokens, ten words
        >>> p.select_positions(torch.ones(4, 6, dtype=torch.bool)).probs.shape
        torch.Size([24, 10])
        """

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
        return log_probs.argmax(self.class_axis).masked_fill(log_probs.isnan().any(self.class_axis), -1)

    @property
    def confidence(self) -> Tensor:
        """The probability of that class."""
        return self.probs.amax(self.class_axis)

    @property
    def entropy(self) -> Tensor:
        """Total uncertainty in nats, `[B, …]`."""
        return torch.special.entr(self.probs).sum(self.class_axis)

    @property
    def mutual_information(self) -> Tensor:
        """What the members disagree about: never negative, zero for one member."""
        return (self.entropy - self.expected_entropy).clamp_min(0)

    def nll(self, targets: Tensor) -> Tensor:
        """−log p(target) of every row, `[B, …]`; zero where the target is −100, as in torch's cross-entropy."""
        log_probs = self.arrange_classes().log_probs
        index = targets.long().view(log_probs[:, :1].shape)
        ignored = index == IGNORED
        return -log_probs.gather(1, index.masked_fill(ignored, 0)).masked_fill(ignored, 0).squeeze(1)

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
    @abc.abstractmethod
    def quantiles(self) -> Tensor:
        """The quantiles that the members of a regression predict, averaged over them: `[Q, B, C, …]`, lowest level first.

        The average of rising quantiles rises, so these never cross. It is not the quantile of the members' mixture, which is
        wider where members differ. Raises AttributeError if the members predict none.

        >>> from pluribus import Predictive
        >>> outputs = torch.tensor([[[0.0, -1.0, 1.0]], [[0.0, -3.0, 5.0]]])  # two members, one row: mean, low, high
        >>> low, high = Predictive(outputs, "regression", quantile_levels=(0.05, 0.95)).quantiles
        >>> low, high
        (tensor([[-2.]]), tensor([[3.]]))
        """

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

    def _needs_quantiles(self) -> None:
        self._needs("regression")
        if not self.quantile_levels:
            raise AttributeError("these members predict no quantiles: convert with quantiles=(0.05, 0.95), say")
