"""Every score of an ensemble in one pass over the rows, batch by batch.

Of a row a few numbers are kept (ranks, curves and intervals need them), of the members only counts: memory grows with neither
members nor classes, and by about 80 bytes a row.
"""

from typing import Any

import torch
from torch import Tensor

from ..core.predictive import Predictive, Task
from ..metrics.calibration import adaptive_calibration_error, bin_by_confidence, brier_terms, sum_classwise_gaps
from ..metrics.intervals import Interval, bootstrap
from ..metrics.regression import gaussian_terms, is_covered
from ..metrics.selective import risk_coverage_curve

BINS = 15
COVERAGE = 0.8
Scores = dict[str, float]


def create_scores(task: Task, noise: float | None = 0.0) -> "ClassificationScores | RegressionScores":
    """Where to add batches. `noise` is the variance of a regression's targets about their mean, None where it is not known."""
    return ClassificationScores() if task == "classification" else RegressionScores(noise)


class RowScores:
    """A few numbers of every row, in the order in which they came."""

    columns: tuple[str, ...]

    def __init__(self) -> None:
        self.parts: list[Tensor] = []

    def __len__(self) -> int:
        return sum(part.shape[1] for part in self.parts)

    def keep(self, *values: Tensor) -> None:
        self.parts.append(torch.stack([value.flatten().double() for value in values]).cpu())

    def table(self) -> dict[str, Tensor]:
        """Each column, `[N]`."""
        if len(self.parts) > 1:
            self.parts = [torch.cat(self.parts, dim=1)]
        return dict(zip(self.columns, self.parts[0], strict=True))

    def __getitem__(self, column: str) -> Tensor:
        return self.table()[column]

    def mean(self, column: str) -> float:
        return self[column].double().mean().item()


class ClassificationScores(RowScores):
    """
    >>> kept = ClassificationScores()
    >>> kept.add(Predictive(torch.tensor([[[9.0, 0.0], [9.0, 0.0]]])), torch.tensor([0, 1]))
    >>> kept.scores()["accuracy"], len(kept)
    (0.5, 2)
    """

    columns = (
        *("nll", "brier", "confidence", "right", "entropy", "mutual_information", "disagreement"),
        *("member_nll", "member_right", "answer"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.classwise = torch.zeros(0)
        self.divergence = 0.0
        self.errors = torch.zeros(0)
        self.together = torch.zeros(0)

    def add(self, p: Predictive, targets: Tensor) -> None:
        members = p.member_log_probs  # [M, B, C]
        truth = targets.long().view(1, -1, 1).expand(len(members), -1, 1)
        own = -members.gather(2, truth).squeeze(2)  # [M, B]
        wrong = (members.argmax(2) != targets.view(1, -1)).double()
        log_probs = p.log_probs
        top, labels = log_probs.max(1)
        right = labels == targets.view_as(labels)
        self.keep(
            *(p.nll(targets), brier_terms(p, targets), top.exp(), right, p.entropy, p.mutual_information, p.disagreement),
            *(own.mean(0), 1 - wrong.mean(0), labels),
        )
        self.count(log_probs.exp().double(), targets, members.double(), wrong)

    def count(self, probs: Tensor, targets: Tensor, members: Tensor, wrong: Tensor) -> None:
        """What is summed over rows: gaps of each class's bins, divergences of pairs of members, their errors together."""
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

    def scores(self) -> Scores:
        kept = self.table()
        risk = risk_coverage_curve(kept["confidence"], 1 - kept["right"])[1]
        return {
            "accuracy": self.mean("right"),
            "nll": self.mean("nll"),
            "brier": self.mean("brier"),
            "ece": bin_by_confidence(kept["confidence"], kept["right"], BINS).error,
            "adaptive_ece": adaptive_calibration_error(kept["confidence"], kept["right"], BINS),
            "classwise_ece": self.classwise.abs().sum().item() / (len(self) * (len(self.classwise) // BINS)),
            "aurc": risk.mean().item(),
            "accuracy_at_80": 1 - risk[max(round(COVERAGE * len(risk)), 1) - 1].item(),
        }

    def member_scores(self) -> Scores:
        """What a member does on its own, averaged over the members."""
        return {"accuracy": self.mean("member_right"), "nll": self.mean("member_nll")}

    def diversity(self) -> Scores:
        """As the functions in `diversity`, from sums."""
        rows, count = len(self), len(self.errors)
        differ, error = self.mean("disagreement"), self.errors.sum().item() / (rows * count)
        found = {"disagreement": differ, "normalised_disagreement": differ / error if error > 0 else 0.0}
        if count == 1:
            return found | {"pairwise_kl": 0.0, "error_correlation": 1.0}
        rate = self.errors / rows
        covariance = self.together / rows - rate.outer(rate)
        # A member that is always right, or always wrong, has exactly these counts.
        steady = (self.errors == 0) | (self.errors == rows)
        scale = torch.where(steady, 0.0, (rate * (1 - rate)).clamp_min(1e-300).rsqrt())
        correlation = covariance * scale.outer(scale)
        pairs = correlation.sum() - correlation.diagonal().sum()
        return found | {
            "pairwise_kl": self.divergence / rows,
            "error_correlation": (pairs / (count * (count - 1))).item(),
        }

    def intervals(self, draws: int = 1000, seed: int = 0) -> dict[str, Interval]:
        """95 % intervals over rows. Of the ECE the reverse percentile, as resampling adds an error of its own to it."""
        kept = self.table()
        pair = torch.stack([kept["confidence"], kept["right"]], dim=1)
        means = {"accuracy": "right", "nll": "nll", "brier": "brier"}
        found = {name: bootstrap(kept[column], draws=draws, seed=seed) for name, column in means.items()}
        few = min(draws, 200)  # these sort or bin all rows in every draw
        ece = bootstrap(pair, lambda rows: bin_by_confidence(rows[:, 0], rows[:, 1], BINS).error, draws=few, seed=seed)
        low, high = max(2 * ece.value - ece.high, 0.0), max(2 * ece.value - ece.low, 0.0)
        found["ece"] = Interval(ece.value, min(low, ece.value), max(high, ece.value))

        def aurc(rows: Tensor) -> Tensor:
            return risk_coverage_curve(rows[:, 0], 1 - rows[:, 1])[1].mean()

        found["aurc"] = bootstrap(pair, aurc, draws=few, seed=seed)
        return found

    def reliability(self) -> dict[str, list[Any]]:
        """By bins of confidence: its mean, the accuracy, and how many rows; None where there are none."""
        kept = self.table()
        found = bin_by_confidence(kept["confidence"], kept["right"], BINS)
        count = found.rows.tolist()

        def means(totals: Tensor) -> list[float | None]:
            return [total / n if n else None for total, n in zip(totals.tolist(), count, strict=True)]

        return {"confidence": means(found.confidence), "accuracy": means(found.correct), "count": [int(n) for n in count]}

    def risk_coverage(self, points: int = 100) -> dict[str, list[float]]:
        """The curve at the coverages 1/points, 2/points, …, 1: the same ones however many rows there are."""
        kept = self.table()
        _, risk = risk_coverage_curve(kept["confidence"], 1 - kept["right"])
        coverage = torch.arange(1, points + 1).double() / points
        places = (coverage * len(risk) - 1e-9).ceil().long() - 1
        return {"coverage": coverage.tolist(), "risk": risk[places].tolist()}


class RegressionScores(RowScores):
    """Targets and answers in the units of the targets.

    Without a noise variance there are errors alone: members say how much they differ, not how noisy the targets are, and the
    NLL of one sure member would mean nothing.
    """

    columns: tuple[str, ...] = ("square", "variance", "member_square", "mean", "nll", "crps", "within_50", "within_95")

    def __init__(self, noise: float | None = 0.0) -> None:
        super().__init__()
        self.noise = noise
        if noise is None:
            self.columns = self.columns[:4]

    def add(self, p: Predictive, targets: Tensor) -> None:
        values, truth = p.members.double().flatten(2), targets.view_as(p.mean).double().flatten(1)
        mean = values.mean(0)
        kept = [(mean - truth).square().mean(1), (values - mean).square().mean((0, 2)), (values - truth).square().mean((0, 2))]
        kept.append(mean.mean(1))
        if self.noise is not None:
            kept += [term.flatten(1).mean(1) for term in gaussian_terms(p, targets, self.noise)]
            held = (is_covered(p, targets, share, self.noise) for share in (0.5, 0.95))
            kept += [each.double().flatten(1).mean(1) for each in held]
        self.keep(*kept)

    def scores(self) -> Scores:
        rmse = {"rmse": self.mean("square") ** 0.5}
        if self.noise is None:
            return rmse
        return rmse | {
            "nll": self.mean("nll"),
            "crps": self.mean("crps"),
            "coverage_50": self.mean("within_50"),
            "coverage_95": self.mean("within_95"),
        }

    def member_scores(self) -> Scores:
        return {"rmse": self.mean("member_square") ** 0.5}

    def diversity(self) -> Scores:
        """The members' mean squared error is what they share plus what averaging removes."""
        return {"error": self.mean("member_square"), "bias": self.mean("square"), "variance": self.mean("variance")}

    def intervals(self, draws: int = 1000, seed: int = 0) -> dict[str, Interval]:
        kept = self.table()
        means = {"nll": "nll", "crps": "crps", "coverage_50": "within_50", "coverage_95": "within_95"}
        found = {n: bootstrap(kept[column], draws=draws, seed=seed) for n, column in means.items() if column in kept}
        return {"rmse": Interval(*(bound**0.5 for bound in bootstrap(kept["square"], draws=draws, seed=seed)))} | found
