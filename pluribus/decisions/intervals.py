"""Prediction intervals of a regression that hold the target with a chosen probability.

    interval = [a − q · scale, b + q · scale],     score of a row = max(a − target, target − b) / scale

q is the conformal threshold (`conformal.py`) of the scores of held-out rows, so that the coverage holds whatever the network's
own uncertainty is worth.

Of members that answer with means, with or without a variance, a and b are both the mean, and the score is |target − mean| /
scale. The scale is the root of the total variance ("normalised": wide where noise is predicted or the members differ), or 1
("absolute": the same width everywhere):

    total variance = noise + spread of the members

The noise is what the members predict for the row; of members that predict none it is one number, fitted on held-out rows.

Of members that predict quantiles, a and b are the lowest and the highest one (conformalised quantile regression). The scale is
1 ("absolute": all ends are moved by q), or their distance ("normalised": wide intervals are moved more). Quantiles that lie too
far apart have a negative q, by which the intervals shrink; one that would end before it begins becomes its middle.

Lei et al., "Distribution-Free Predictive Inference for Regression", 2018, sections 2.2 and 5.2; Romano, Patterson & Candès,
"Conformalized Quantile Regression", NeurIPS 2019, eqs. 6 and 7; with the distance as the scale: Sesia & Candès, "A comparison
of some conformal quantile regression methods", 2020.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from ..core.texts import format_amount
from ..metrics.regression import fit_noise_variance
from .conformal import count_needed_rows, find_threshold

Scale = Literal["normalised", "absolute"]
SCALES: tuple[str, ...] = get_args(Scale)
TINY = 1e-12
DEFAULT_COVERAGE = 0.9


@dataclass(frozen=True)
class RegressionRules:
    """What was fitted on held-out rows: the variance of the `noise`, and the sorted `scores` of those rows.

    `coverage` is the level of intervals that is taken where none is named. Where `is_noise_predicted` by the members there was
    no noise to fit, and `noise` is zero. `quantiles` are the levels of the members' quantiles that intervals begin with; empty
    if they begin with the mean.
    """

    noise: float
    coverage: float
    scale: Scale
    scores: tuple[float, ...] = field(repr=False)
    is_noise_predicted: bool = False
    quantiles: tuple[float, ...] = ()

    needs_members = False

    def decide(self, p: Predictive | PredictiveSummary, coverage: float | None = None) -> "Intervals":
        """The interval of each row of a prediction at this level, or at that of the rules: `[B, C, …]`.

        Raises: ValueError if the level is not between 0 and 1, or if the rules are for other quantiles than those of p.

        >>> rules = RegressionRules(noise=1.0, coverage=0.5, scale="absolute", scores=(1.0, 2.0, 3.0))
        >>> rules.decide(Predictive(torch.tensor([[[10.0]]]), "regression")).low
        tensor([[8.]], dtype=torch.float64)
        """
        return self.build_intervals(p, self.find_reach(coverage), self.coverage if coverage is None else coverage)

    def find_reach(self, coverage: float | None = None) -> float:
        """How far intervals of this level, or of that of the rules, reach, in units of their scale."""
        level = self.coverage if coverage is None else coverage
        return find_threshold(torch.tensor(self.scores, dtype=torch.double), level)

    def build_intervals(self, p: Predictive | PredictiveSummary, reach: float, level: float) -> "Intervals":
        """The interval of each row with a known reach."""
        if p.quantile_levels != self.quantiles:
            raise ValueError(
                f"the rules were fitted to quantiles {list(self.quantiles)}, and these members predict "
                f"{list(p.quantile_levels)}: fit them anew"
            )
        mean, noise = p.mean.double(), p.noise_variance.double() + self.noise
        first, last = find_ends(p)
        move = reach * compute_scale(p, self.scale, self.noise)
        low, high = first - move, last + move
        middle = (first + last) / 2
        is_empty = low > high
        low, high = torch.where(is_empty, middle, low), torch.where(is_empty, middle, high)
        return Intervals(mean, low, high, noise.sqrt(), p.spread_variance.double().sqrt(), level)

    def explain(self) -> list[str]:
        """A sentence for people."""
        rows, need = len(self.scores), count_needed_rows(self.coverage)
        if rows < need:
            return [
                f"intervals of {100 * self.coverage:.4g} % need {need} held-out rows, and {rows} are left for them: they are "
                "infinite; ask for less, or give more rows"
            ]
        if self.quantiles:
            amount = "in proportion to their distance" if self.scale == "normalised" else "by the same amount everywhere"
            return [
                f"intervals hold the target with {100 * self.coverage:.4g} %: from the quantile {self.quantiles[0]} to "
                f"{self.quantiles[-1]}, moved {amount}"
            ]
        how = "as wide as noise and members' spread say" if self.scale == "normalised" else "equally wide everywhere"
        noise = "the noise is predicted row by row" if self.is_noise_predicted else f"noise {format_amount(self.noise**0.5)}"
        return [f"intervals hold the target with {100 * self.coverage:.4g} %, {how}; {noise}"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals from `low` to `high` beside the `mean`, `[B, C, …]` each, and the two parts of the uncertainty as standard
    deviations: `noise`, the same for all rows unless the members predict a variance, and their `spread`. `coverage` is the
    level."""

    mean: Tensor
    low: Tensor
    high: Tensor
    noise: Tensor
    spread: Tensor
    coverage: float

    def __len__(self) -> int:
        return len(self.mean)

    def hold(self, targets: Tensor) -> Tensor:
        """Whether each interval holds its target, in the shape of the mean."""
        targets = targets.view_as(self.mean).double()
        return (self.low <= targets) & (targets <= self.high)

    @property
    def width(self) -> Tensor:
        """How wide each interval is."""
        return self.high - self.low


def fit_regression_rules(
    p: Predictive | PredictiveSummary,
    targets: Tensor,
    coverage: float | None = None,
    scale: Scale | None = None,
    seed: int = 0,
) -> RegressionRules:
    """Fit the noise and the intervals on held-out rows.

    Args: the prediction of held-out rows, and their `targets`; the level of intervals that is taken where none is named, by
    default what lies between the lowest and the highest quantile that the members predict, and 0.9 if they predict none; the
    scale, by default "normalised" if there are several members or they predict the noise, and "absolute" for quantiles. If
    members predict neither noise nor quantiles, half of the rows fit the noise of normalised intervals, and the other half the
    intervals: otherwise the coverage would not be exact. Raises: ValueError if an argument makes no sense.

    >>> p = Predictive(torch.zeros(1, 99, 1), "regression")
    >>> rules = fit_regression_rules(p, torch.linspace(-1, 1, 99))
    >>> rules.scale, round(rules.decide(p).high[0].item(), 2)
    ('absolute', 0.92)
    """
    if len(p) != len(targets) or len(p) < 2:
        raise ValueError(f"there must be a target for each of two rows or more, got {len(p)} rows and {len(targets)} targets")
    if not bool(p.is_finite.all()):
        raise ValueError("the network has no finite answer to some held-out rows")
    levels = p.quantile_levels
    if coverage is None:
        coverage = round(levels[-1] - levels[0], 12) if levels else DEFAULT_COVERAGE
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
    several = (len(p.outputs) if isinstance(p, Predictive) else p.count) > 1
    scale = scale or ("normalised" if (several or p.has_noise) and not levels else "absolute")
    if scale not in SCALES:
        raise ValueError(f"scale must be {' or '.join(SCALES)}, got {scale!r}")
    mean, spread = p.mean.double(), p.spread_variance.double()
    targets = targets.view_as(mean).double()
    if p.has_noise:
        return RegressionRules(0.0, coverage, scale, sort_scores(score_rows(p, targets, scale)), is_noise_predicted=True)
    if scale == "absolute" or levels:
        scores = sort_scores(score_rows(p, targets, scale))
        return RegressionRules(fit_noise_variance(p, targets), coverage, scale, scores, quantiles=levels)
    order = torch.randperm(len(p), generator=torch.Generator().manual_seed(seed)).to(mean.device)
    first, second = order[: len(p) // 2], order[len(p) // 2 :]
    noise = max(((targets - mean).square()[first].mean() - spread[first].mean()).item(), 0.0)
    return RegressionRules(noise, coverage, scale, sort_scores(score_rows(p, targets, scale, noise)[second]))


def find_ends(p: Predictive | PredictiveSummary) -> tuple[Tensor, Tensor]:
    """Where the intervals begin and end before they are moved: the outermost quantiles, or twice the mean, `[B, C, …]` each."""
    if not p.quantile_levels:
        return p.mean.double(), p.mean.double()
    quantiles = p.quantiles.double()
    return quantiles[0], quantiles[-1]


def score_rows(p: Predictive | PredictiveSummary, targets: Tensor, scale: Scale, noise: float = 0.0) -> Tensor:
    """How far each target lies outside the ends, in units of the scale; negative inside: `[B, C, …]`, as the targets.

    >>> outputs = torch.tensor([[[0.0, -1.0, 1.0]] * 3])  # the quantiles of three rows are −1 and 1
    >>> p = Predictive(outputs, "regression", quantile_levels=(0.1, 0.9))
    >>> score_rows(p, torch.tensor([[-3.0], [0.0], [1.5]]).double(), "absolute").flatten().tolist()
    [2.0, -1.0, 0.5]
    """
    first, last = find_ends(p)
    return torch.maximum(first - targets, targets - last) / compute_scale(p, scale, noise)


def compute_scale(p: Predictive | PredictiveSummary, scale: Scale, noise: float = 0.0) -> Tensor:
    """What the ends are moved in proportion to, in the shape of the mean; `noise` is added to the members' variance."""
    if scale == "absolute":
        return torch.ones_like(p.mean, dtype=torch.double)
    if p.quantile_levels:
        first, last = find_ends(p)
        return (last - first).clamp_min(TINY)
    return (p.variance.double() + noise).clamp_min(TINY).sqrt()


def sort_scores(scores: Tensor) -> tuple[float, ...]:
    """The score of every row, sorted; of several outputs the largest, so that an interval holds all of a row's outputs."""
    return tuple(scores.flatten(1).amax(1).sort().values.tolist())
