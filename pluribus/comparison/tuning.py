"""Tuning: every method gets the same number of trials, and the best one's settings for its judged runs.

tuning/grid.yaml     the settings of every trial, by its name `<method>-<number>`; number 0 is the default configuration
tuning/<trial>/      its run: configuration, learning curve and trial.json, without weights
tuning.json          all trials with their scores, and what was chosen

A trial is scored on the validation rows of a seed that no judged run has. Trials run in two rounds. Those of the first round, a
third of them, are trained to their end; those of the second round are stopped early where they are worse than the median of the
first (`runs.pruning`). No trial depends on another one of its round, so the choice does not depend on workers, their order, or
kills.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.file_names import check_inside
from ..core.files import remove_leftovers, restore_number
from ..data import Data
from ..experiments import Job, read_failure, run_jobs
from ..file_formats.comparison_files import GridFile
from ..file_formats.reading import read_json, read_yaml, write_json, write_yaml
from ..file_formats.tuning_files import TuningFile
from ..runs.choices import format_choice
from ..runs.config import Config, ConfigError, build_config, build_spec, describe_spec, find_role
from ..runs.consent import check_consent, get_consent
from ..runs.grid import Cell, Grid, Report, make_folder_name, read_state
from ..runs.run_folder import Run
from ..runs.trial import name_score, run_trial
from .trial_plan import plan_trials

Json = dict[str, Any]
FOLDER, RECORD = "tuning", "tuning.json"
MOST = 5000
"""Trials of a comparison."""


def check_tuning(count: int, methods: int, data: Data, config: Config) -> None:
    """Raise ConfigError if so many trials, or such data, cannot be used for tuning."""
    if count < 2:
        raise ConfigError(f"tune must be at least 2, got {count}: the first trial is the default configuration")
    if count * methods > MOST:
        raise ConfigError(f"tune must be at most {MOST // methods:,} for {methods} methods, got {count:,}: each trial is a run")
    if not config.validation:
        raise ConfigError("tune needs validation rows to choose by: set validation above 0")
    if not len(data.test):
        raise ConfigError(
            f"tune chooses by the validation rows, and {data.name} has no test rows, so that these must judge: add test rows, "
            "or leave tune out"
        )


def find_tuned_choice(choice: Json, baseline: Json) -> Json | None:
    """The method that another one is tuned as, because its members are whole networks; None if it has trials of its own."""
    spec = build_spec(choice)
    part = getattr(spec, spec.nested_option) if spec.nested_option else None
    if not spec.is_tuned_as_part or (part is not None and part.is_tuned_as_part):
        return None
    return baseline if part is None else describe_spec(part)


def write_trials(
    path: Path,
    choices: Sequence[Json],
    count: int,
    seeds: Sequence[int],
    common: Config,
    data: Data,
    fit: Callable[[Config], Mapping[str, Any]],
    known: Mapping[str, Any] | None = None,
) -> Json:
    """Draw the trials of all methods, write their settings into the folder of a comparison, and return what compare.yaml holds.

    Args:
        path: the folder of the comparison.
        choices: its methods, with the baseline among them.
        count: how many trials each method may have.
        seeds: those of the judged runs. The trials have the smallest one that is not among them.
        common: the configuration that all runs share, resolved.
        data: what they train on.
        fit: returns the settings that bring a configuration within the budget.
        known: trials that the folder has; they stay as they are, and a method that has some gets no others.
    """
    baseline = next(choice for choice in choices if build_spec(choice).role == "baseline")
    seed = next(number for number in itertools.count() if number not in seeds)
    tuned = {format_choice(found): found for choice in choices for found in [find_tuned_choice(choice, baseline) or choice]}
    cells: Json = dict(known or {})
    for choice in tuned.values():
        if f"{make_folder_name(choice)}-0" in cells:
            continue
        config = common.model_copy(update={"method": choice, "seed": seed})
        trials = plan_trials(config.model_copy(update=dict(fit(config))), data, count, seeds[0], fit)
        cells |= {f"{make_folder_name(choice)}-{number}": options for number, options in enumerate(trials)}
    (path / FOLDER).mkdir(parents=True, exist_ok=True)
    write_yaml(path / FOLDER / "grid.yaml", cells)
    return {"trials": count, "score": name_score(data.task, common)}


@dataclass(frozen=True)
class Tuning:
    """The trials of a comparison."""

    path: Path
    """The folder of the comparison."""
    planned: Grid
    """Its judged runs, with the options and settings that were planned."""
    count: int
    """How many trials each method may have."""
    score: str
    """Which score decides between them."""
    trials: dict[str, list[Cell]]
    """Those of each method that has some, by the name of the method."""

    @staticmethod
    def open(planned: Grid, count: int, score: str) -> "Tuning":
        """Open the trials that were drawn for a comparison. Raises FileError if their plan is missing or damaged."""
        content = read_yaml(planned.path / FOLDER / "grid.yaml", GridFile)
        cells = [Cell(name, build_config(options, name).model_dump(mode="json")) for name, options in content.items()]
        groups = {name: list(group) for name, group in itertools.groupby(cells, lambda cell: cell.name.rpartition("-")[0])}
        titles = {name: format_choice(group[0].options["method"]) for name, group in groups.items()}
        trials = {titles[name]: [replace(cell, title=titles[name]) for cell in group] for name, group in groups.items()}
        return Tuning(planned.path, planned, count, score, trials)

    # --- running --------------------------------------------------------------------------------------------------

    def run(self, workers: str, report: Report | None = None) -> Json:
        """Run the trials that have not ended, choose, and write and return what tuning.json holds."""
        place = self.path / RECORD
        if place.is_file():
            return read_json(place, TuningFile)
        remove_leftovers(self.path / FOLDER)
        for cell in self.list_trials():
            if not self.read_run(cell).is_tried:
                check_consent(cell.options["model"], self.path / FOLDER / "grid.yaml")
        first = math.ceil(self.count / 3) if self.count > 3 else self.count
        self.run_round({name: cells[:first] for name, cells in self.trials.items()}, {}, workers, report)
        curves = {
            name: [record["curve"] for record in self.read_records(cells[:first]) if record["state"] == "complete"]
            for name, cells in self.trials.items()
        }
        self.run_round({name: cells[first:] for name, cells in self.trials.items()}, curves, workers, report)
        record = self.collect()
        write_json(place, record)
        return record

    def run_round(
        self, cells: Mapping[str, list[Cell]], curves: Mapping[str, list[Any]], workers: str, report: Report | None
    ) -> None:
        """Run trials that do not depend on one another; `curves` are those that they are compared with."""
        from ..training.interrupts import Interrupted

        jobs = []
        for name, group in cells.items():
            for cell in group:
                folder = check_inside(self.path / FOLDER / cell.name, self.path).resolve()
                arguments = (cell.options, str(folder), curves.get(name, []), self.planned.objects, get_consent())
                jobs.append(Job(cell.name, folder, run_trial, arguments, (Interrupted,)))
        run_jobs(jobs, workers, is_finished=lambda job: Run(job.folder).is_tried, read_states=self.read_states, report=report)

    def list_trials(self) -> list[Cell]:
        return [cell for cells in self.trials.values() for cell in cells]

    def read_run(self, cell: Cell) -> Run:
        return Run(self.path / FOLDER / cell.name)

    def read_states(self) -> list[Json]:
        """The state of every trial, read from its folder."""
        return [self.read_trial_state(cell) for cell in self.list_trials()]

    def read_trial_state(self, cell: Cell) -> Json:
        run, number = self.read_run(cell), cell.name.rpartition("-")[2]
        about = {"method": f"tuning {cell.method}", "run": f"trial {number}", "seed": cell.seed}
        if not run.is_tried:
            state = read_state(run, cell) | about
            return state | ({"state": "scoring"} if state["state"] == "done" else {})
        record = run.read_json("trial.json")
        ends = {"complete": "done", "pruned": "stopped early", "failed": "failed"}
        scores = {self.score: record["score"]} if record["state"] == "complete" else {}
        return about | {"state": ends[record["state"]], "scores": scores, "seconds": record["seconds"]}

    def read_records(self, cells: Sequence[Cell]) -> list[Json]:
        """How trials ended. One that an unforeseen error ended, or whose worker died every time, has failed."""
        lost: Json = {"state": "failed", "score": None, "epochs": 0, "seconds": 0.0, "curve": []}
        return [
            run.read_json("trial.json")
            if run.is_tried
            else lost | {"reason": read_failure(run.path) or "its worker died every time"}
            for run in map(self.read_run, cells)
        ]

    # --- choosing -------------------------------------------------------------------------------------------------

    def collect(self) -> Json:
        """What tuning.json holds."""
        methods: dict[str, Json] = {}
        for name, cells in self.trials.items():
            records = self.read_records(cells)
            chosen = choose_trial(records)
            methods[name] = {
                "name": name,
                "trained_as": None,
                "spec": str(build_spec(cells[chosen].options["method"])),
                "chosen": chosen,
                "trials": [
                    describe_changes(cell, cells[0]) | {key: value for key, value in record.items() if key != "curve"}
                    for cell, record in zip(cells, records, strict=True)
                ],
            }
        found = {"trials": self.count, "seed": self.list_trials()[0].seed, "score": self.score, "methods": []}
        for title in dict.fromkeys(cell.method for cell in self.planned.cells):
            cell = next(cell for cell in self.planned.cells if cell.method == title)
            part = self.find_part(cell)
            if title not in methods and part is not None:
                options = self.choose_options(cell, {part: methods[part]["chosen"]})
                spec = str(build_spec(options["method"]))
                methods[title] = {"name": title, "trained_as": part, "spec": spec, "chosen": 0, "trials": []}
        return found | {"methods": list(methods.values())}

    def apply(self, record: Json) -> Grid:
        """The judged runs with what was chosen. Raises FileError if the record does not fit the trials."""
        chosen = {entry["name"]: entry["chosen"] for entry in record["methods"]}
        for name, cells in self.trials.items():
            if not 0 <= chosen.get(name, -1) < len(cells):
                raise FileError(f"{self.path / RECORD} is damaged, it chooses no trial of {name}: {TuningFile.cure}")
        cells = [
            Cell(cell.name, build_config(self.choose_options(cell, chosen)).model_dump(mode="json"), cell.method)
            for cell in self.planned.cells
        ]
        return replace(self.planned, cells=tuple(cells))

    def find_part(self, cell: Cell) -> str | None:
        """The method that a planned run is tuned as: its own, or that of its members; None if it has no trials."""
        baseline = next(each for each in self.planned.cells if build_spec(each.options["method"]).role == "baseline")
        part = find_tuned_choice(cell.options["method"], baseline.options["method"])
        name = format_choice(cell.options["method"] if part is None else part)
        return name if name in self.trials else None

    def choose_options(self, cell: Cell, chosen: Mapping[str, int]) -> Json:
        """The settings of a planned run with those that were chosen for its method."""
        name = self.find_part(cell)
        if name is None:
            return cell.options
        default, best = self.trials[name][0], self.trials[name][chosen[name]]
        changes = {key: value for key, value in best.options.items() if value != default.options[key]}
        if cell.is_student:  # settings that it was given as a student stay
            own = [key for key, value in cell.options.items() if value != default.options[key] and key != "method"]
            changes = {key: value for key, value in changes.items() if key not in own}
        if name == format_choice(cell.options["method"]):
            return cell.options | changes
        # The budget gave it epochs and a width of its own. Its members are made by the spec that was chosen for them.
        changes = {key: value for key, value in changes.items() if key not in ("method", "epochs", "model")}
        method, spec = cell.options["method"], build_spec(best.options["method"])
        option = build_spec(method).nested_option
        if option is not None and describe_spec(spec) != {"name": find_role("baseline")}:
            with contextlib.suppress(ConfigError):  # some members cannot be had: stacked ones are plain networks
                build_spec(method | {option: best.options["method"]})
                method = method | {option: best.options["method"]}
        return cell.options | changes | {"method": method}


def choose_trial(records: Sequence[Json]) -> int:
    """The number of the trial with the lowest score among those that were trained to their end; 0 if there is none.

    >>> ended = [{"state": "complete", "score": 0.3}, {"state": "pruned", "score": 0.1}, {"state": "complete", "score": 0.2}]
    >>> choose_trial(ended)
    2
    """
    scores = [restore_number(record["score"]) for record in records]
    usable = [n for n, record in enumerate(records) if record["state"] == "complete" and math.isfinite(scores[n])]
    return min(usable, key=lambda number: (scores[number], number), default=0)


def describe_changes(cell: Cell, default: Cell) -> Json:
    """The options and the settings of a trial that differ from those of the default configuration."""
    method, usual = cell.options["method"], default.options["method"]
    options = {key: value for key, value in method.items() if key not in usual or usual[key] != value}
    others = {key: value for key, value in cell.options.items() if key != "method" and value != default.options[key]}
    return {"options": options, "settings": others}
