"""Choose the settings of a row of a table: every row has as many trials, each scored on validation rows.

The trials are those of `pluribus compare --tune`: the first is the default configuration, and common settings (learning rate,
decay, label smoothing, mixup) are the same draws for every row. They are trained with a seed that no judged run has.
"""

import hashlib
import json

from filelock import FileLock

from ..comparison.trial_plan import plan_trials
from ..comparison.tuning import choose_trial
from ..runs.config import build_config
from ..runs.run_folder import Run
from ..runs.training import load_data, resolve_config
from ..runs.trial import run_trial
from .recipe import Json, Workspace
from .trained_runs import add_data_folder, take_run_settings

TRIAL_SEED, PLAN_SEED = 3, 0


def choose_settings(settings: Json, count: int, workspace: Workspace) -> Json:
    """The settings, changed as in the best of `count` trials. Trials that another cell has run are not run again."""
    if count == 1:
        return settings
    config = build_config(add_data_folder(take_run_settings(settings) | {"seed": TRIAL_SEED}, workspace))
    data = load_data(config)
    trials = plan_trials(resolve_config(config, data), data, count, PLAN_SEED)
    records = []
    for number, trial in enumerate(trials):
        workspace.report(f"trial {number + 1}/{len(trials)}")
        records.append(run_shared_trial(trial, workspace))
    best = trials[choose_trial(records)]
    return settings | {name: value for name, value in best.items() if value != trials[0][name]}


def run_shared_trial(settings: Json, workspace: Workspace) -> Json:
    """Run a trial, or read what it found before. Two cells that need the same trial wait for each other."""
    name = f"trial-{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:10]}"
    folder = workspace.shared / name
    workspace.shared.mkdir(parents=True, exist_ok=True)
    with FileLock(workspace.shared / f"{name}.lock"):
        run_trial(settings, str(folder))
    return Run(folder).read_json("trial.json")
