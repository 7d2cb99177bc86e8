"""One trial of a tuning: a run that is stopped early if it is bad, and scored on its validation rows, never on test rows."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..core.errors import NonFiniteWeights, Unsupported
from ..data.dataset import Task
from ..file_formats.run_files import read_metrics
from ..metrics.pinball import pinball
from ..metrics.regression import gaussian_nll, rmse
from ..metrics.temperature import LOG_PRIOR, calibrated_nll
from ..models.registry import ModelError
from ..training.lightning_module import Diverged
from ..training.phases import plan_phases
from .config import Config, ConfigError, build_config
from .consent import NOTHING, Consent, give_consent
from .evaluation import predict_held_out
from .evaluation_case import EvaluationCase
from .loading import load_rows, load_run, passed_objects
from .pruning import Curve, Pruner, TrialPruning, read_curve
from .run_folder import Run
from .training import is_leader, train_run


def run_trial(
    options: dict[str, Any],
    path: str,
    others: Sequence[Curve] = (),
    objects: Mapping[str, Any] | None = None,
    consent: Consent = NOTHING,
) -> None:
    """Run one trial from its last checkpoint on, and write trial.json. A worker calls this.

    A configuration that cannot be trained is a result: the trial has failed, and is not run again. At the end the checkpoints
    and the
    weights are removed: the score is what a trial is for.

    Args:
        options: the settings of the run.
        path: its folder.
        others: the learning curves of the trials by which this one is stopped early; without any, it is not.
        objects: networks and data that the options name and that were passed from Python.
        consent: to the factories that the options may name.
    """
    run, began = Run(Path(path)), time.time()
    if run.is_tried:
        return
    config = build_config(options)
    found: dict[str, Any]
    pruner = Pruner(others)
    with passed_objects(objects or {}), give_consent(consent):
        try:
            callbacks = [TrialPruning(pruner)]
            result = train_run(config, run.path, resume=True, progress=False, wait=True, callbacks=callbacks, scored=False)
            if not is_leader():
                return
            history = read_metrics(run.metrics)
            curve, phases = read_curve(history), plan_phases(history, config)
            is_whole = len(curve) == (phases.epochs if phases else config.most_epochs)
            is_pruned = pruner.find_last_epoch(curve) is not None and not is_whole
            found = {"state": "pruned" if is_pruned else "complete", "score": score_validation(run)}
            found["curve"] = curve[: int(result.get("decay_from") or len(curve))]
            found |= {"epochs": result["epochs"], "seconds": result["seconds"]}
        except (Diverged, ConfigError, ModelError, Unsupported, NonFiniteWeights) as error:
            found = {"state": "failed", "score": None, "curve": [], "epochs": 0, "seconds": round(time.time() - began, 1)}
            diverged = "the network has diverged: some of its numbers are NaN or infinite"  # without the path of its file
            found["reason"] = diverged if isinstance(error, NonFiniteWeights) else str(error)
    run.path.mkdir(parents=True, exist_ok=True)
    run.write_json("trial.json", found)
    shutil.rmtree(run.checkpoints, ignore_errors=True)
    for file in (run.weights, run.weights.with_suffix(".json")):
        file.unlink(missing_ok=True)


def name_score(task: Task, config: Config) -> str:
    """The score that decides between trials; a regression may predict the noise of its targets, or quantiles.

    >>> config = Config(data="houses.csv", quantiles=(0.05, 0.95))
    >>> name_score("classification", Config(data="digits")), name_score("regression", config)
    ('calibrated_nll', 'pinball')
    """
    if task == "classification":
        return "calibrated_nll"
    if config.quantiles:
        return "pinball"
    return "rmse" if config.target_noise is None else "nll"


SCORES: dict[str, Callable[..., float]] = {
    "calibrated_nll": partial(calibrated_nll, prior=LOG_PRIOR),
    "nll": gaussian_nll,
    "pinball": pinball,
    "rmse": rmse,
}


def score_validation(run: Run) -> float:
    """The score that decides, of the validation rows of a finished run.

    Validation rows may be so few that all are right: a prior keeps their temperature from zero.
    """
    made, config, about, preparation = load_run(run)
    data, rows = load_rows(config, about, preparation, "validation", None)
    found = predict_held_out(EvaluationCase(made, data, rows, config.seed), rows)
    assert found is not None  # `load_rows` raises if there are none
    return SCORES[name_score(data.task, config)](*found)
