"""An ensemble with rules for its answers, fitted on held-out rows."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..core.ensemble import Ensemble
from .abstention import DELTA
from .classification import ClassificationRules, Decisions, fit_classification_rules
from .conformal import SetScore
from .intervals import Intervals, RegressionRules, Scale, fit_regression_rules


@dataclass(frozen=True, eq=False)
class CalibratedEnsemble:
    """An `ensemble` and its `rules`. `predict` answers with decisions: sets, intervals, refusals and alarms."""

    ensemble: Ensemble
    rules: ClassificationRules | RegressionRules

    def predict(self, x: Any, batch_size: int | None = None) -> Decisions | Intervals:
        """What to say about each row of a batch or loader, as `Ensemble.predict` takes them."""
        p = (
            self.ensemble.predict(x, batch_size)
            if self.rules.needs_members
            else self.ensemble.predict(x, batch_size, members=False)
        )
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
) -> CalibratedEnsemble:
    """Fit rules for the answers of an ensemble on held-out rows, which it was not trained on.

    Args:
        ensemble: a trained ensemble; one network is one, too (`Single`).
        x: the held-out rows, as `Ensemble.predict` takes them; `y` their targets.
        coverage: the probability with which sets of classes, or intervals (0.9 unless told), are to hold the target.
        risk: the share of answers that may be wrong: the other rows are not answered.
        false_alarms: the share of rows like the training data that may be taken for foreign.
        foreign: rows that are unlike the training data, by which the score of the alarm is chosen.
        sets: how classes are scored, "lac", "aps" or "raps".
        scale: "normalised" or "absolute" intervals.
        delta: the probability that the risk is not kept.

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
        given = {"risk": risk, "false_alarms": false_alarms, "foreign": foreign}
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}= is for classes, and this is a regression: leave it out")
        p, level = ensemble.predict(x, members=False), 0.9 if coverage is None else coverage
        return CalibratedEnsemble(ensemble, fit_regression_rules(p, y.to(p.mean.device), level, scale, seed))
    if scale is not None:
        raise ValueError("scale= is for the intervals of a regression, and this is a classification: leave it out")
    own = ensemble.predict(x)
    others = None if foreign is None else ensemble.predict(foreign)
    rules = fit_classification_rules(
        own, y.to(own.outputs.device), coverage, risk, false_alarms, others, sets=sets, delta=delta, seed=seed
    )
    return CalibratedEnsemble(ensemble, rules)
