"""Rules for the answers of a run: fitted on its held-out rows, kept in its folder, checked on its test rows."""

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import FileError, Unsupported
from ..core.predictive import Predictive, PredictiveSummary
from ..data import Data
from ..data.dataset import Part
from ..data.preparation import Preparation
from ..decisions.abstention import DELTA
from ..decisions.alarms import AlarmScore
from ..decisions.classification import ClassificationRules, fit_classification_rules
from ..decisions.conformal import SetScore
from ..decisions.intervals import DEFAULT_COVERAGE, RegressionRules, Scale, fit_regression_rules
from ..file_formats.digests import digest_file
from .config import Config, ConfigError
from .consent import Trust
from .evaluation_case import EvaluationCase
from .loading import load_rows, load_run
from .robustness import load_out_of_distribution
from .run_folder import Run, open_run
from .training_distance import learn_distance, measure_distance, write_distance

CALIBRATION = "calibration.json"
Rules = ClassificationRules | RegressionRules


def calibrate_run(
    path: Path,
    coverage: float | None = None,
    risk: float | None = None,
    false_alarms: float | None = None,
    ood: str | None = None,
    other: str | None = None,
    split: str = "validation",
    sets: SetScore = "raps",
    scale: Scale | None = None,
    delta: float = DELTA,
    trust: Trust = False,
    report: Callable[[int], None] | None = None,
    alarm: AlarmScore | None = None,
) -> dict[str, Any]:
    """Fit rules on held-out rows of the run in the folder `path`, and write them to calibration.json there.

    The arguments are those of `pluribus.calibrate`; `ood` names a set of foreign rows, `other` another data set to fit on, of
    which all rows are taken that `split` names. If the run has test rows which are not those, the rules are checked on them.
    `report` is called with the rows of each batch. Returns the record. Raises: ConfigError if rows or wishes do not fit.
    """
    run = open_run(path)
    made, config, about, preparation = load_run(run, trust)
    data, part = load_held_out(run, config, about, preparation, split, other)
    case = EvaluationCase(made, data, part, config.seed, report)
    if made.task == "regression":
        check_regression_wishes(risk, false_alarms, ood, alarm)
    elif coverage is None and risk is None and false_alarms is None:
        coverage = DEFAULT_COVERAGE
    if ood is not None and false_alarms is None:
        raise ConfigError("--ood chooses the score of the alarm: say how many false alarms may be, as in --false-alarms 0.05")
    if scale is not None and made.task == "classification":
        raise ConfigError("--scale is for the intervals of a regression, and this is a classification: leave it out")
    if alarm is not None and false_alarms is None:
        raise ConfigError(
            f"--alarm {alarm} is the score of an alarm: say how many false alarms may be, as in --false-alarms 0.05"
        )
    p, y = predict_part(case, part, keep_members=ood is not None or alarm == "energy")
    foreign = None
    strangers: Part | None = None
    if ood is not None:
        strange, _ = load_out_of_distribution(case, ood, config.data_dir)
        strangers = Part(strange, torch.zeros(len(strange), dtype=torch.long))
        foreign = predict_part(case, strangers, keep_members=True)[0]
    distance = None
    if alarm == "distance" or (alarm is None and foreign is not None):
        training = load_rows(config, about, preparation, "train", None)[1]
        try:
            distance = learn_distance(made, training, preparation, config.seed)
        except Unsupported as error:
            if alarm is not None:
                raise ConfigError(f"--alarm distance: {error}") from error

    def measure(rows: Part | None) -> Tensor | None:
        return None if distance is None or rows is None else measure_distance(distance, made, rows, preparation)

    rules: Rules
    try:
        if made.task == "regression":
            rules = fit_regression_rules(p, y, coverage, scale, config.seed)
        else:
            own = measure(part)
            distances = None if own is None else (own, measure(strangers))
            wishes = (coverage, risk, false_alarms, foreign, sets, delta, config.seed, alarm, distances)
            rules = fit_classification_rules(p, y, *wishes)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    record = {
        "weights": digest_file(run.weights),
        "data": data.name,
        "split": split if other is None else "all",
        "ood": ood,
        "rows": len(part),
        "rules": {"kind": made.task} | asdict(rules),
        "checked": check_rules(rules, case, config, about, foreign, measure, strangers) if split != "test" else None,
        "features": write_distance(run, distance.known) if distance is not None and needs_features(rules) else None,
    }
    run.write_json(CALIBRATION, record)
    return record


def load_held_out(
    run: Run, config: Config, about: dict[str, Any], preparation: Preparation, split: str, other: str | None
) -> tuple[Data, Part]:
    """The rows to fit on. Raises ConfigError if there are none, or if the network was trained on them."""
    if split not in ("validation", "test"):
        raise ConfigError(f"rules must be fitted on rows that the network was not trained on, validation or test, got {split}")
    if other is None and split == "validation" and not config.validation:
        raise ConfigError(
            f"{run.path} was trained without validation rows: name a file of other rows with --data, or take half of what you "
            "know with --split test"
        )
    data, part = load_rows(config, about, preparation, split, other)
    if not len(part):
        raise ConfigError(f"{data.name} has no {split} rows to fit on")
    return data, part


def check_regression_wishes(risk: float | None, false_alarms: float | None, ood: str | None, alarm: str | None) -> None:
    """Raise ConfigError for rules that only classes have."""
    for name, value in (("--risk", risk), ("--false-alarms", false_alarms), ("--ood", ood), ("--alarm", alarm)):
        if value is not None:
            raise ConfigError(f"{name} is for classes, and this is a regression: it has intervals, as in --coverage 0.9")


def predict_part(case: EvaluationCase, part: Part, keep_members: bool) -> tuple[Predictive | PredictiveSummary, Tensor]:
    """The prediction of all rows, in the units of the targets, and their targets."""
    found = list(case.predict_batches(part))
    y = torch.cat([targets for _, targets in found])
    if keep_members:
        return Predictive.cat([p for p, _ in found]), y
    return PredictiveSummary.cat([p.summarize() for p, _ in found]), y


def check_rules(
    rules: Rules,
    case: EvaluationCase,
    config: Config,
    about: dict[str, Any],
    foreign: Predictive | PredictiveSummary | None,
    measure: Callable[[Part | None], Tensor | None],
    strangers: Part | None,
) -> dict[str, Any] | None:
    """What the rules do on the test rows, which they were not fitted on; None if there are none."""
    if not about["test"]:
        return None
    _, part = load_rows(config, about, case.data.preparation, "test", None)
    p, y = predict_part(case, part, keep_members=rules.needs_members)
    if isinstance(rules, RegressionRules):
        found = rules.decide(p)
        return {
            "rows": len(part),
            "coverage": found.hold(y).flatten(1).all(1).double().mean().item(),
            "width": found.width.mean().item(),
        }
    is_far = rules.needs_features
    decided = rules.decide(p, measure(part) if is_far else None)
    checked: dict[str, Any] = {"rows": len(part)}
    wrong = (decided.labels != y.view_as(decided.labels)).double()
    if decided.sets is not None:
        checked |= {
            "coverage": decided.sets.gather(1, y.long().view(-1, 1)).double().mean().item(),
            "set_size": decided.sets.sum(1).double().mean().item(),
        }
    if decided.is_answered is not None:
        answered = decided.is_answered.double()
        checked |= {
            "answered": answered.mean().item(),
            "risk": (wrong * answered).sum().item() / answered.sum().item() if answered.any() else None,
            "risk_of_all": wrong.mean().item(),
        }
    if decided.is_foreign is not None:
        checked["false_alarms"] = decided.is_foreign.double().mean().item()
        if foreign is not None:
            caught = rules.decide(foreign, measure(strangers) if is_far else None).is_foreign
            assert caught is not None
            checked["caught"] = caught.double().mean().item()
    return checked


def needs_features(rules: Rules | None) -> bool:
    """Whether a decision by these rules needs the rows' distance to the training rows."""
    return isinstance(rules, ClassificationRules) and rules.needs_features


def read_rules(run: Run) -> Rules | None:
    """The rules of a run; None if it has none. Raises FileError if they are damaged, or belong to other weights."""
    if not (run.path / CALIBRATION).is_file():
        return None
    record = run.read_json(CALIBRATION)
    if record["weights"] != digest_file(run.weights):
        raise FileError(
            f"{run.path / CALIBRATION} belongs to other weights than {run.weights.name}: fit the rules again with "
            f"`pluribus calibrate {run.path}`"
        )
    values = {key: value for key, value in record["rules"].items() if key != "kind"}
    if record["rules"]["kind"] == "regression":
        return RegressionRules(**(values | {key: tuple(values.get(key, ())) for key in ("scores", "quantiles")}))
    thresholds = ("set_threshold", "least_confidence", "alarm_threshold")
    return ClassificationRules(**(values | {key: math.inf if values[key] is None else values[key] for key in thresholds}))
