"""An ensemble with rules for its answers, fitted on held-out rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.errors import Unsupported
from .abstention import DELTA
from .alarms import AlarmScore
from .classification import ClassificationRules, Decisions, fit_classification_rules
from .conformal import SetScore
from .feature_distance import TrainingDistance, learn_training_distance
from .intervals import Intervals, RegressionRules, Scale, fit_regression_rules


@dataclass(frozen=True, eq=False)
class CalibratedEnsemble:
    """An `ensemble` and its `rules`. `predict` answers with decisions: sets, intervals, refusals and alarms.

    `distance` measures how far rows are from the training rows, where the rule of the alarm is by that.
    """

    ensemble: Ensemble
    rules: ClassificationRules | RegressionRules
    distance: TrainingDistance | None = None

    def predict(self, x: Any, batch_size: int | None = None) -> Decisions | Intervals:
        """What to say about each row of a batch or loader, as `Ensemble.predict` takes them."""
        x = x if self.distance is None else keep_batches(x)
        p = (
            self.ensemble.predict(x, batch_size)
            if self.rules.needs_members
            else self.ensemble.predict(x, batch_size, members=False)
        )
        if isinstance(self.rules, ClassificationRules) and self.distance is not None:
            return self.rules.decide(p, self.distance.measure(x))
        return self.rules.decide(p)

    def __str__(self) -> str:
        return "\n".join(self.rules.explain())


def calibrate(
    ensemble: Ensemble,
    x: Any,
    y: Tensor,
    *,
    coverage: float | None = None,
    risk: float | None = None,
    false_alarms: float | None = None,
    foreign: Any = None,
    sets: SetScore = "raps",
    scale: Scale | None = None,
    delta: float = DELTA,
    seed: int = 0,
    training: tuple[Any, Tensor] | None = None,
    alarm: AlarmScore | None = None,
) -> CalibratedEnsemble:
    """Fit rules for the answers of an ensemble on held-out rows, which it was not trained on.

    Args:
        ensemble: a trained ensemble; one network is one, too (`Single`).
        x: the held-out rows, as `Ensemble.predict` takes them; `y` their targets.
        coverage: the probability with which sets of classes, or intervals, are to hold the target; for intervals 0.9 if it is
            not told, or what lies between the outermost quantiles that the members predict.
        risk: the share of answers that may be wrong: the other rows are not answered.
        false_alarms: the share of rows like the training data that may be taken for foreign.
        foreign: rows that are unlike the training data, by which the score of the alarm is chosen.
        sets: how classes are scored, "lac", "aps" or "raps".
        scale: "normalised" or "absolute" intervals (`fit_regression_rules`).
        delta: the probability that the risk is not kept.
        training: rows that the network was trained on, and their classes, a few thousand of them. With them the alarm may be by
            the distance of features (`feature_distance.py`), which costs one more pass of a plain network.
        alarm: the score of the alarm ("confidence", "entropy", "mutual-information", "energy", "distance"), if it is not to be
            chosen.

    Returns: a `CalibratedEnsemble`. Raises: ValueError if an argument makes no sense.

    >>> import torch, pluribus
    >>> from torch import nn
    >>> ensemble = pluribus.ensemble(nn.Linear(4, 1), pluribus.DeepEnsemble(members=4), task="regression")
    >>> x, y = torch.randn(200, 4), torch.randn(200)
    >>> calibrated = pluribus.calibrate(ensemble, x, y, coverage=0.8)
    >>> calibrated.predict(torch.randn(5, 4)).low.shape
    torch.Size([5, 1])
    """
    if ensemble.task == "regression":
        given = {"risk": risk, "false_alarms": false_alarms, "foreign": foreign, "training": training, "alarm": alarm}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}= is for classes, and this is a regression: leave it out")
        p = ensemble.predict(x, members=False)
        return CalibratedEnsemble(ensemble, fit_regression_rules(p, y.to(p.mean.device), coverage, scale, seed))
    if scale is not None:
        raise ValueError("scale= is for the intervals of a regression, and this is a classification: leave it out")
    if training is not None:
        x, foreign = keep_batches(x), keep_batches(foreign)
    own = ensemble.predict(x)
    others = None if foreign is None else ensemble.predict(foreign)
    distance = None
    if alarm == "distance" and training is None:
        raise ValueError('alarm="distance" is that to training rows: pass some of them, training=(x, y)')
    if training is not None and (alarm == "distance" or (alarm is None and foreign is not None)):
        try:
            distance = learn_training_distance(ensemble, *training)
        except Unsupported:
            if alarm is not None:
                raise
    distances = None
    if distance is not None:
        distances = (distance.measure(x), None if foreign is None else distance.measure(foreign))
    rules = fit_classification_rules(
        own,
        y.to(own.outputs.device),
        coverage,
        risk,
        false_alarms,
        others,
        sets=sets,
        delta=delta,
        seed=seed,
        alarm=alarm,
        distances=distances,
    )
    return CalibratedEnsemble(ensemble, rules, distance if rules.needs_features else None)


def keep_batches(x: Any) -> Any:
    """What can be read twice: the batches of an iterator that yields each of them only once, or anything else as it is."""
    return KeptBatches(x) if isinstance(x, Iterator) else x


class KeptBatches:
    """The batches of an iterator, to go over again and again."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self.batches = list(batches)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)
