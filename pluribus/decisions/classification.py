"""Rules for the answers of a classifier: sets of classes, when not to answer, and when to raise an alarm.

Each rule is fitted on held-out rows, which the network was not trained on, and has its own guarantee: `conformal.py`,
`abstention.py` and `alarms.py` say which.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..core.predictive import Predictive, PredictiveSummary
from .abstention import DELTA, count_needed_answers, find_safe_confidence
from .alarms import DEFAULT_SCORE, AlarmScore, choose_alarm_score, list_alarm_scores, score_strangeness
from .conformal import SetScore, build_sets, find_threshold, score_truth

MOST_NAMED = 3
"""Classes that a text names where the answer may also be withheld: a longer set says nothing that one can act on."""
WITHHELD, FOREIGN = "I would rather not say", "this is not like my training data"


@dataclass(frozen=True)
class ClassificationRules:
    """What was fitted on `rows` held-out rows. A rule that was not asked for is None.

    `coverage`: sets hold the true class with this probability; `set_score` and `set_threshold` make them.
    `risk`: at most this share of the answers above `least_confidence` is wrong, with the probability 1 − `delta`.
    `false_alarms`: at most this share of rows like the training data has an `alarm_score` above `alarm_threshold`.
    """

    rows: int
    coverage: float | None = None
    set_score: SetScore = "raps"
    set_threshold: float = math.inf
    risk: float | None = None
    delta: float = DELTA
    least_confidence: float = math.inf
    false_alarms: float | None = None
    alarm_score: AlarmScore = DEFAULT_SCORE
    alarm_threshold: float = math.inf

    @property
    def needs_members(self) -> bool:
        """Whether a prediction must keep its members."""
        return self.false_alarms is not None and self.alarm_score == "energy"

    @property
    def needs_features(self) -> bool:
        """Whether a decision needs the rows' distance to the training rows."""
        return self.false_alarms is not None and self.alarm_score == "distance"

    def decide(self, p: Predictive | PredictiveSummary, distance: Tensor | None = None) -> "Decisions":
        """What to say about each of B rows; `distance` `[B]` is that of `feature_distance.py`.

        >>> rules = ClassificationRules(rows=99, coverage=0.9, set_score="lac", set_threshold=0.7)
        >>> rules.decide(Predictive(torch.tensor([[[0.6, 0.35, 0.05]]]).log())).describe("abc")
        ['a or b']
        """
        probs, confidence = p.probs, p.confidence
        sets = None if self.coverage is None else build_sets(probs, self.set_threshold, self.set_score)
        is_answered = None if self.risk is None else confidence.double() > self.least_confidence
        is_foreign = None
        if self.false_alarms is not None:
            is_foreign = score_strangeness(p, self.alarm_score, distance) > self.alarm_threshold
        return Decisions(p.labels, confidence, sets, is_answered, is_foreign)

    def explain(self) -> list[str]:
        """A sentence for each rule, for people."""
        said = []
        if self.coverage is not None:
            size = (
                "all classes, because there are too few held-out rows"
                if math.isinf(self.set_threshold)
                else "as few as it takes"
            )
            said.append(f"sets hold the true class with {format_share(self.coverage)}: {size} (by {self.set_score.upper()})")
        if self.risk is not None and math.isinf(self.least_confidence):
            said.append(
                f"no answer is safe at a risk of {format_share(self.risk)}: it takes at least "
                f"{count_needed_answers(self.risk, self.delta):,} held-out rows whose answers are right, and there are "
                f"{self.rows:,} rows; allow a higher risk, or give more rows"
            )
        elif self.risk is not None:
            which = f"above a confidence of {self.least_confidence:.4f}" if self.least_confidence else "to all rows"
            said.append(f"answers {which}: at most {format_share(self.risk)} of them are wrong")
        if self.false_alarms is not None:
            said.append(
                f"alarm where {self.alarm_score} is above {self.alarm_threshold:.4g}: "
                f"at most {format_share(self.false_alarms)} of rows like the training data"
            )
        return said


@dataclass(frozen=True, eq=False)
class Decisions:
    """What to say about B rows: `labels` and `confidence` `[B]`; `sets` `[B, C]`, `is_answered` and `is_foreign` `[B]`, each of
    which is None if there is no rule for it."""

    labels: Tensor
    confidence: Tensor
    sets: Tensor | None = field(default=None, repr=False)
    is_answered: Tensor | None = None
    is_foreign: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def describe(self, classes: Sequence[str]) -> list[str]:
        """One text for each row: "9", "7 or 9", "I would rather not say", or "this is not like my training data".

        An alarm comes first. A row that is confident enough is answered with its class. Otherwise a set of up to three classes
        is named, if there are sets; without a rule for confidence, a set is named whatever its size is.

        >>> rows, yes, no = torch.tensor([0, 1]), torch.tensor([True, False]), torch.tensor([False, False])
        >>> Decisions(rows, rows, None, yes, no).describe(["cat", "dog"])
        ['cat', 'I would rather not say']
        """
        return [self._describe_row(row, classes) for row in range(len(self))]

    def _describe_row(self, row: int, classes: Sequence[str]) -> str:
        if self.is_foreign is not None and bool(self.is_foreign[row]):
            return FOREIGN
        label = int(self.labels[row])
        if label < 0:
            return WITHHELD
        if self.is_answered is None and self.sets is None:
            return classes[label]
        if self.is_answered is not None and bool(self.is_answered[row]):
            return classes[label]
        if self.sets is None:
            return WITHHELD
        named = [classes[place] for place in self.sets[row].nonzero().flatten().tolist()]
        if self.is_answered is not None and not 1 < len(named) <= MOST_NAMED:
            return WITHHELD
        return " or ".join(named)


def fit_classification_rules(
    p: Predictive | PredictiveSummary,
    targets: Tensor,
    coverage: float | None = None,
    risk: float | None = None,
    false_alarms: float | None = None,
    foreign: Predictive | PredictiveSummary | None = None,
    sets: SetScore = "raps",
    delta: float = DELTA,
    seed: int = 0,
    alarm: AlarmScore | None = None,
    distances: tuple[Tensor, Tensor | None] | None = None,
) -> ClassificationRules:
    """Fit the rules that are asked for.

    Args:
        p: the prediction of held-out rows; `targets` `[B]` their classes.
        coverage: the probability with which sets are to hold the true class.
        risk: the share of answers that may be wrong; `delta` the probability that this fails.
        false_alarms: the share of rows like the training data that may raise the alarm.
        foreign: the prediction of rows that are unlike the training data. Half of the held-out rows then choose the score of
            the alarm, and the other half its threshold. Without them the score is the entropy.
        sets: "lac", "aps" or "raps".
        alarm: the score of the alarm, whatever foreign rows say.
        distances: of the held-out and of the foreign rows to the training rows (`feature_distance.py`), for the alarm.

    Raises:
        ValueError: nothing is asked for, a share is not between 0 and 1, or some rows have no finite answer.

    >>> p = Predictive(torch.tensor([[[0.7, 0.2, 0.1]] * 10]).log())
    >>> rules = fit_classification_rules(p, torch.tensor([0] * 7 + [1] * 2 + [2]), coverage=0.8, sets="lac")
    >>> rules.decide(p).sets[0].tolist()  # two classes hold nine of ten
    [True, True, False]
    """
    check_held_out(p, targets, coverage, risk, false_alarms)
    found = ClassificationRules(len(p), coverage, sets, risk=risk, delta=delta, false_alarms=false_alarms)
    changes: dict[str, object] = {}
    if coverage is not None:
        changes["set_threshold"] = find_threshold(score_truth(p.probs, targets, sets), coverage)
    if risk is not None:
        changes["least_confidence"] = find_safe_confidence(p.confidence, p.labels == targets.view_as(p.labels), risk, delta)
    if false_alarms is not None:
        changes |= fit_alarm(p, foreign, false_alarms, seed, alarm, distances or (None, None))
    elif alarm is not None:
        raise ValueError(f"alarm={alarm!r} is the score of an alarm: say how many false alarms may be, as in false_alarms=0.05")
    return ClassificationRules(**{**found.__dict__, **changes})


def fit_alarm(
    p: Predictive | PredictiveSummary,
    foreign: Predictive | PredictiveSummary | None,
    false_alarms: float,
    seed: int,
    alarm: AlarmScore | None = None,
    distances: tuple[Tensor | None, Tensor | None] = (None, None),
) -> dict[str, object]:
    """The score of the alarm and its threshold, by name."""
    if not 0 < false_alarms < 1:
        raise ValueError(f"false_alarms must be between 0 and 1, got {false_alarms}")
    if foreign is None or alarm is not None:
        chosen = alarm or DEFAULT_SCORE
        scores = score_strangeness(p, chosen, distances[0]).cpu()
        return {"alarm_score": chosen, "alarm_threshold": find_threshold(scores, 1 - false_alarms)}
    order = torch.randperm(len(p), generator=torch.Generator().manual_seed(seed))
    choosing, fitting = order[: len(p) // 2], order[len(p) // 2 :]
    names = list_alarm_scores(p, has_distance=None not in distances)
    own, others = (
        {score: score_strangeness(rows, score, distance).cpu() for score in names}
        for rows, distance in zip((p, foreign), distances, strict=True)
    )
    best = choose_alarm_score({score: values[choosing] for score, values in own.items()}, others)
    return {"alarm_score": best, "alarm_threshold": find_threshold(own[best][fitting], 1 - false_alarms)}


def check_held_out(p: Predictive | PredictiveSummary, targets: Tensor, *asked: float | None) -> None:
    """Raise ValueError if nothing is asked for, or if the rows cannot be used."""
    if all(value is None for value in asked):
        raise ValueError("say what to fit: coverage=, risk= or false_alarms=")
    if len(p) != len(targets) or not len(p):
        raise ValueError(f"there must be a target for each of the rows, and at least one row, got {len(p)} and {len(targets)}")
    if p.probs.dim() != 2:
        raise ValueError(f"there must be one class a row, got probabilities of the shape {list(p.probs.shape)}")
    if not bool(p.is_finite.all()):
        raise ValueError("the network has no finite answer to some held-out rows")


def format_share(share: float) -> str:
    """A share as a percentage: 0.01 → "1 %"."""
    return f"{100 * share:.4g} %"
