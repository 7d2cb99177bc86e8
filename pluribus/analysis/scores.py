"""Every score of an ensemble in one pass over the rows, batch by batch.

A few numbers are kept for every row, because ranks, curves and intervals need them, and only counts for the members. Memory
therefore grows with the rows, and neither with members nor with classes: by 80 bytes for each row of a classification, and by
404 more for its NLL on the grid of temperatures, from which the calibrated NLL follows (float32 at 101 temperatures; 4 MB for
10,000 rows); by 80 bytes for each row of a regression, and 16 more for each of its outputs.

A method that returns a score or a curve has its name (`scores`, `diversity`, `reliability`), as in `metrics`.
"""

from typing import Any

import torch
from torch import Tensor

from ..core.predictive import Predictive, Task
from ..metrics.calibration import adaptive_calibration_error, bin_by_confidence, brier_terms, sum_classwise_gaps
from ..metrics.intervals import Interval, bootstrap
from ..metrics.noise import NEUTRAL, NO_FACTOR, nll_at_factors, nll_at_noises
from ..metrics.pinball import pinball_terms
from ..metrics.regression import LEVELS, coverage_terms, gaussian_terms, interval_calibration, width_terms
from ..metrics.selective import risk_coverage_curve
from ..metrics.temperature import cross_fit_nll, nll_at_temperatures

BINS = 15
COVERAGE = 0.8
Scores = dict[str, float]


def create_scores(
    task: Task, noise: float | None = 0.0, with_calibrated: bool = True
) -> "ClassificationScores | RegressionScores":
    """Create an empty collection of scores; its `add` takes the batches one by one.

    Args: the task; for a regression, `noise`, the variance of the targets about their mean, or None where it is not known;
    `with_calibrated`, whether a classification has a calibrated NLL, which takes most of the memory.

    >>> collected = create_scores("regression", noise=1.0)
    >>> collected.add(Predictive(torch.zeros(2, 3, 1), "regression"), torch.ones(3))
    >>> collected.scores()["rmse"]
    1.0
    """
    return ClassificationScores(with_calibrated) if task == "classification" else RegressionScores(noise)


class RowScores:
    """A few numbers for every row, in the order in which the rows were added."""

    columns: tuple[str, ...]

    def __init__(self) -> None:
        self.parts: list[Tensor] = []
        self.kept_for_calibration: list[Tensor] = []
        self.calibrated = torch.zeros(0, dtype=torch.double)
        self.sub_ensembles: dict[str, Tensor] = {}
        """Columns of `sub_ensembles.py`, if they were asked for."""
        self.not_finite = 0
        """How many rows have an answer that is not finite; one of them makes every score NaN."""

    def __len__(self) -> int:
        return sum(part.shape[1] for part in self.parts)

    def append(self, *values: Tensor) -> None:
        """Append the columns of a batch, `[B]` each."""
        self.parts.append(torch.stack([value.flatten().double() for value in values]).cpu())

    def table(self) -> dict[str, Tensor]:
        """All columns by name, `[N]` each; `calibrated_nll` is cross-fitted on halves of all rows that were added."""
        if len(self.parts) > 1:
            self.parts = [torch.cat(self.parts, dim=1)]
        found = dict(zip(self.columns, self.parts[0], strict=True))
        if not self.kept_for_calibration:
            return found
        if len(self.calibrated) != len(self):
            self.kept_for_calibration = [torch.cat(self.kept_for_calibration)]
            self.calibrated = self.calibrate_nll(self.kept_for_calibration[0])
        return found | {"calibrated_nll": self.calibrated}

    def calibrate_nll(self, kept: Tensor) -> Tensor:
        """The calibrated NLL of every row, `[N]`, from what was kept for it, `[N, …]`."""
        raise NotImplementedError

    def __getitem__(self, column: str) -> Tensor:
        return self.table()[column]

    def mean(self, column: str) -> float:
        return self[column].double().mean().item()


class ClassificationScores(RowScores):
    """The scores of a classification.

    >>> collected = ClassificationScores()
    >>> collected.add(Predictive(torch.tensor([[[9.0, 0.0], [9.0, 0.0]]])), torch.tensor([0, 1]))
    >>> collected.scores()["accuracy"], len(collected)
    (0.5, 2)
    """

    columns = (
        *("nll", "brier", "confidence", "right", "entropy", "mutual_information", "disagreement"),
        *("member_nll", "member_right", "answer"),
    )

    def __init__(self, with_calibrated: bool = True) -> None:
        super().__init__()
        self.with_calibrated = with_calibrated
        self.classwise = torch.zeros(0)
        self.divergence = 0.0
        self.errors = torch.zeros(0)
        self.together = torch.zeros(0)

    def add(self, p: Predictive, targets: Tensor) -> None:
        """Add a batch: predictions of B rows, and their classes `[B]`."""
        members = p.member_log_probs  # [M, B, C]
        truth = targets.long().view(1, -1, 1).expand(len(members), -1, 1)
        own = -members.gather(2, truth).squeeze(2)  # [M, B]
        wrong = (members.argmax(2) != targets.view(1, -1)).double().masked_fill(members.isnan().any(2), torch.nan)
        log_probs = p.log_probs
        top, labels = log_probs.max(1)
        lost = top.isnan()
        self.not_finite += int(lost.sum().item())
        right = (labels == targets.view_as(labels)).double().masked_fill(lost, torch.nan)
        self.append(
            *(p.nll(targets), brier_terms(p, targets), top.exp(), right, p.entropy, p.mutual_information, p.disagreement),
            *(own.mean(0), 1 - wrong.mean(0), labels.masked_fill(lost, -1)),
        )
        if self.with_calibrated:
            self.kept_for_calibration.append(nll_at_temperatures(p, targets).float().cpu())
        self._add_counts(log_probs.exp().double(), targets, members.double(), wrong)

    def _add_counts(self, probs: Tensor, targets: Tensor, members: Tensor, wrong: Tensor) -> None:
        """Add up the gaps of each class's bins, the divergences of pairs of members, and their common errors."""
        classes, count = probs.shape[1], len(members)
        if not len(self.classwise):
            self.classwise = probs.new_zeros(BINS * classes)
            self.errors, self.together = probs.new_zeros(count), probs.new_zeros(count, count)
        self.classwise += sum_classwise_gaps(probs, targets, BINS)
        self.errors += wrong.sum(1)
        self.together += wrong @ wrong.T
        if count > 1:
            from .diversity import pairwise_kl

            self.divergence += pairwise_kl(Predictive(members)) * probs.shape[0]

    def calibrate_nll(self, kept: Tensor) -> Tensor:
        return cross_fit_nll(kept)

    def scores(self) -> Scores:
        """Accuracy, NLL as it is and calibrated, Brier score, calibration errors, AURC, and the accuracy at 80 % coverage."""
        kept = self.table()
        risk = risk_coverage_curve(kept["confidence"], 1 - kept["right"])[1]
        return {
            "accuracy": self.mean("right"),
            "nll": self.mean("nll"),
            **({"calibrated_nll": self.mean("calibrated_nll")} if "calibrated_nll" in kept else {}),
            "brier": self.mean("brier"),
            "ece": bin_by_confidence(kept["confidence"], kept["right"], BINS).error,
            "adaptive_ece": adaptive_calibration_error(kept["confidence"], kept["right"], BINS),
            "classwise_ece": self.classwise.abs().sum().item() / (len(self) * (len(self.classwise) // BINS)),
            "aurc": risk.mean().item(),
            "accuracy_at_80": 1 - risk[max(round(COVERAGE * len(risk)), 1) - 1].item(),
        }

    def member_scores(self) -> Scores:
        """Accuracy and NLL of a single member, averaged over the members."""
        return {"accuracy": self.mean("member_right"), "nll": self.mean("member_nll")}

    def diversity(self) -> Scores:
        """The measures of `analysis.diversity`, computed from sums."""
        rows, count = len(self), len(self.errors)
        differ, error = self.mean("disagreement"), self.errors.sum().item() / (rows * count)
        found = {"disagreement": differ, "normalised_disagreement": differ / error if error != 0 else 0.0}
        if count == 1:
            return found | {"pairwise_kl": 0.0, "error_correlation": 1.0}
        rate = self.errors / rows
        covariance = self.together / rows - rate.outer(rate)
        # A member that is always right or always wrong has a constant error, whose correlation counts as 0.
        is_constant = (self.errors == 0) | (self.errors == rows)
        scale = torch.where(is_constant, 0.0, (rate * (1 - rate)).clamp_min(1e-300).rsqrt())
        correlation = covariance * scale.outer(scale)
        pairs = correlation.sum() - correlation.diagonal().sum()
        return found | {
            "pairwise_kl": self.divergence / rows,
            "error_correlation": (pairs / (count * (count - 1))).item(),
        }

    def intervals(self, draws: int = 1000, seed: int = 0) -> dict[str, Interval]:
        """95 % bootstrap intervals over rows. For the ECE they are reversed, because resampling adds to it."""
        kept = self.table()
        pair = torch.stack([kept["confidence"], kept["right"]], dim=1)
        means = {"accuracy": "right", "nll": "nll", "calibrated_nll": "calibrated_nll", "brier": "brier"}
        found = {n: bootstrap(kept[column], draws=draws, seed=seed) for n, column in means.items() if column in kept}
        few = min(draws, 200)  # every draw of the following sorts or bins all rows
        ece = bootstrap(pair, lambda rows: bin_by_confidence(rows[:, 0], rows[:, 1], BINS).error, draws=few, seed=seed)
        low, high = max(2 * ece.value - ece.high, 0.0), max(2 * ece.value - ece.low, 0.0)
        found["ece"] = Interval(ece.value, min(low, ece.value), max(high, ece.value))

        def aurc(rows: Tensor) -> Tensor:
            return risk_coverage_curve(rows[:, 0], 1 - rows[:, 1])[1].mean()

        found["aurc"] = bootstrap(pair, aurc, draws=few, seed=seed)
        return found

    def reliability(self) -> dict[str, list[Any]]:
        """Mean confidence, accuracy and number of rows of each bin of confidence; means of empty bins are None."""
        kept = self.table()
        found = bin_by_confidence(kept["confidence"], kept["right"], BINS)
        count = found.rows.tolist()

        def means(totals: Tensor) -> list[float | None]:
            return [total / n if n else None for total, n in zip(totals.tolist(), count, strict=True)]

        return {"confidence": means(found.confidence), "accuracy": means(found.correct), "count": [int(n) for n in count]}

    def risk_coverage(self, points: int = 100) -> dict[str, list[float]]:
        """The risk-coverage curve at the coverages 1/points, 2/points, …, 1, which do not depend on the number of rows."""
        kept = self.table()
        _, risk = risk_coverage_curve(kept["confidence"], 1 - kept["right"])
        coverage = torch.arange(1, points + 1).double() / points
        places = (coverage * len(risk) - 1e-9).ceil().long() - 1
        return {"coverage": coverage.tolist(), "risk": risk[places].tolist()}


class RegressionScores(RowScores):
    """The scores of a regression, in the units of the targets.

    Without a noise variance there are only errors: the spread of members does not say how noisy the targets are, so that the
    NLL of a single member would mean nothing.
    """

    columns: tuple[str, ...] = (
        *("square", "variance", "member_square", "mean", "truth"),
        *("nll", "crps", "within_50", "within_95", "width_95"),
    )

    def __init__(self, noise: float | None = 0.0) -> None:
        super().__init__()
        self.noise, self.has_noise, self.noise_sum = noise, False, 0.0
        self.held = torch.zeros(len(LEVELS), dtype=torch.double)
        """How many targets the interval of each level holds."""
        if noise is None:
            self.columns = self.columns[:5]

    def add(self, p: Predictive, targets: Tensor) -> None:
        """Add a batch: predictions of B rows, and their targets."""
        values, truth = p.members.double().flatten(2), targets.view_as(p.mean).double().flatten(1)
        mean = values.mean(0)
        self.not_finite += int((~mean.isfinite().all(1)).sum().item())
        kept = [(mean - truth).square().mean(1), (values - mean).square().mean((0, 2)), (values - truth).square().mean((0, 2))]
        kept += [mean.mean(1), truth.mean(1)]
        if self.noise is not None:
            kept += [term.flatten(1).mean(1) for term in gaussian_terms(p, targets, self.noise)]
            held = (coverage_terms(p, targets, share, self.noise) for share in (0.5, 0.95))
            kept += [each.flatten(1).mean(1) for each in held]
            kept.append(width_terms(p, 0.95, self.noise).flatten(1).mean(1))
            self.held += torch.tensor(interval_calibration(p, targets, self.noise), dtype=torch.double) * len(p)
            self.has_noise = p.has_noise
            spread, predicted = (values - mean).square().mean(0), p.member_noise.double().mean(0).flatten(1)
            self.noise_sum += predicted.mean(1).sum().item()
            terms = torch.stack([(mean - truth).square(), spread + predicted], dim=1)  # [B, 2, C]
            self.kept_for_calibration.append(terms.cpu())
        if p.quantile_levels:
            kept.append(pinball_terms(p, targets).flatten(1).mean(1))
            self.columns = tuple(dict.fromkeys((*self.columns, "pinball")))
        self.append(*kept)

    def calibrate_nll(self, kept: Tensor) -> Tensor:
        if len(kept) < 2:  # there is no other row to fit the noise on
            return self.parts[0][self.columns.index("nll")]
        if self.has_noise:
            return cross_fit_nll(nll_at_factors(kept[:, 0], kept[:, 1]), neutral=NO_FACTOR)
        return cross_fit_nll(nll_at_noises(kept[:, 0], kept[:, 1]), neutral=NEUTRAL)

    def scores(self) -> Scores:
        """RMSE; of predicted quantiles their pinball loss; with a known noise variance also NLL as it is and calibrated, CRPS,
        and coverage and width of intervals."""
        found = {"rmse": self.mean("square") ** 0.5} | ({"pinball": self.mean("pinball")} if "pinball" in self.columns else {})
        if self.noise is None:
            return found
        return found | {
            "nll": self.mean("nll"),
            "calibrated_nll": self.mean("calibrated_nll"),
            "crps": self.mean("crps"),
            "coverage_50": self.mean("within_50"),
            "coverage_95": self.mean("within_95"),
            "width_95": self.mean("width_95"),
        }

    def member_scores(self) -> Scores:
        """RMSE of the members' errors."""
        return {"rmse": self.mean("member_square") ** 0.5}

    def diversity(self) -> Scores:
        """The members' mean squared error, split into bias and variance."""
        return {"error": self.mean("member_square"), "bias": self.mean("square"), "variance": self.mean("variance")}

    def intervals(self, draws: int = 1000, seed: int = 0) -> dict[str, Interval]:
        """95 % bootstrap intervals over rows."""
        kept = self.table()
        means = {"pinball": "pinball", "nll": "nll", "calibrated_nll": "calibrated_nll", "crps": "crps"}
        means |= {"coverage_50": "within_50", "coverage_95": "within_95", "width_95": "width_95"}
        found = {n: bootstrap(kept[column], draws=draws, seed=seed) for n, column in means.items() if column in kept}
        return {"rmse": Interval(*(bound**0.5 for bound in bootstrap(kept["square"], draws=draws, seed=seed)))} | found

    def interval_calibration(self) -> dict[str, list[float]] | None:
        """The levels of central intervals, and the share of the targets that those of each level hold; None without a noise."""
        return None if self.noise is None else {"level": list(LEVELS), "held": (self.held / len(self)).tolist()}

    def predicted_and_true(self, rows: int = 300) -> dict[str, list[float]]:
        """The mean and the target of so many rows at most, which are spread evenly over all of them."""
        places = torch.linspace(0, len(self) - 1, min(rows, len(self))).round().long()
        return {name: self[column][places].tolist() for name, column in (("predicted", "mean"), ("truth", "truth"))}

    def find_noise(self) -> float | None:
        """The standard deviation of the noise: of that which members predict, the root of the mean variance."""
        if self.noise is None:
            return None
        return (self.noise_sum / len(self) if self.has_noise else self.noise) ** 0.5
