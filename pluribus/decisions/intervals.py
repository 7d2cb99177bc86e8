"""Prediction intervals of a regression that hold the target with a chosen probability.

    total variance = noise + spread of the members,     interval = mean ± q · scale

The noise is what the members predict for the row; of members that predict none it is one number, fitted on held-out rows. The
scale is the root of the total variance ("normalised": wide where noise is predicted or the members differ), or 1 ("absolute":
the same width everywhere). q is the conformal threshold (`conformal.py`) of |target − mean| / scale over held-out rows, so that
the coverage holds whatever the network's own variance is worth.

Lei et al., "Distribution-Free Predictive Inference for Regression", 2018, sections 2.2 and 5.2.
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


@dataclass(frozen=True)
class RegressionRules:
    """What was fitted on held-out rows: the variance of the `noise`, and the sorted `scores` of those rows, |error| / scale.

    `coverage` is the level of intervals that is taken where none is named. Where `is_noise_predicted` by the members there was
    no noise to fit, and `noise` is zero.
    """

    noise: float
    coverage: float
    scale: Scale
    scores: tuple[float, ...] = field(repr=False)
    is_noise_predicted: bool = False

    needs_members = False

    def decide(self, p: Predictive | PredictiveSummary, coverage: float | None = None) -> "Intervals":
        """The interval of each row at this level, or at that of the rules.

        >>> rules = RegressionRules(noise=1.0, coverage=0.5, scale="absolute", scores=(1.0, 2.0, 3.0))
        >>> rules.decide(Predictive(torch.tensor([[[10.0]]]), "regression")).low
        tensor([[8.]], dtype=torch.float64)
        """
        level = self.coverage if coverage is None else coverage
        reach = find_threshold(torch.tensor(self.scores, dtype=torch.double), level)
        mean, noise = p.mean.double(), p.noise_variance.double() + self.noise
        half = reach * compute_scale(p.variance.double() + self.noise, self.scale)
        return Intervals(mean, mean - half, mean + half, noise.sqrt(), p.spread_variance.double().sqrt(), level)

    def explain(self) -> list[str]:
        """A sentence for people."""
        rows, need = len(self.scores), count_needed_rows(self.coverage)
        if rows < need:
            return [
                f"intervals of {100 * self.coverage:.4g} % need {need} held-out rows, and {rows} are left for them: they are "
                "infinite; ask for less, or give more rows"
            ]
        how = "as wide as noise and members' spread say" if self.scale == "normalised" else "equally wide everywhere"
        noise = "the noise is predicted row by row" if self.is_noise_predicted else f"noise {format_amount(self.noise**0.5)}"
        return [f"intervals hold the target with {100 * self.coverage:.4g} %, {how}; {noise}"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals from `low` to `high` about the `mean`, `[B, C, …]` each, and the two parts of the uncertainty as standard
    deviations: `noise`, the same for all rows unless the members predict it, and their `spread`. `coverage` is the level."""

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
    coverage: float = 0.9,
    scale: Scale | None = None,
    seed: int = 0,
) -> RegressionRules:
    """Fit the noise and the intervals on held-out rows.

    Args: the prediction of held-out rows, and their `targets`; the level of intervals that is taken where none is named;
    the scale, by default "normalised" if there are several members or they predict the noise. If they do not, half of the rows
    fit the noise of normalised intervals, and the other half the intervals: otherwise the coverage would not be exact. Raises:
    ValueError if an argument makes no sense.

    >>> p = Predictive(torch.zeros(1, 99, 1), "regression")
    >>> rules = fit_regression_rules(p, torch.linspace(-1, 1, 99))
    >>> rules.scale, round(rules.decide(p).high[0].item(), 2)
    ('absolute', 0.92)
    """
    if len(p) != len(targets) or len(p) < 2:
        raise ValueError(f"there must be a target for each of two rows or more, got {len(p)} rows and {len(targets)} targets")
    if not bool(p.is_finite.all()):
        raise ValueError("the network has no finite answer to some held-out rows")
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
    several = (len(p.outputs) if isinstance(p, Predictive) else p.count) > 1
    scale = scale or ("normalised" if several or p.has_noise else "absolute")
    if scale not in SCALES:
        raise ValueError(f"scale must be {' or '.join(SCALES)}, got {scale!r}")
    mean, spread = p.mean.double(), p.spread_variance.double()
    targets = targets.view_as(mean).double()
    if p.has_noise:
        errors = (targets - mean).abs() / compute_scale(p.variance.double(), scale)
        return RegressionRules(0.0, coverage, scale, sort_scores(errors), is_noise_predicted=True)
    if scale == "absolute":
        return RegressionRules(fit_noise_variance(p, targets), coverage, scale, sort_scores((targets - mean).abs()))
    order = torch.randperm(len(p), generator=torch.Generator().manual_seed(seed)).to(mean.device)
    first, second = order[: len(p) // 2], order[len(p) // 2 :]
    noise = max(((targets - mean).square()[first].mean() - spread[first].mean()).item(), 0.0)
    errors = (targets - mean).abs() / compute_scale(spread + noise, scale)
    return RegressionRules(noise, coverage, scale, sort_scores(errors[second]))


def compute_scale(variance: Tensor, scale: Scale) -> Tensor:
    """What the width of an interval is proportional to, in the shape of the total variance."""
    return variance.clamp_min(TINY).sqrt() if scale == "normalised" else torch.ones_like(variance)


def sort_scores(scores: Tensor) -> tuple[float, ...]:
    """The score of every row, sorted; of several outputs the largest, so that an interval holds all of a row's outputs."""
    return tuple(scores.flatten(1).amax(1).sort().values.tolist())
