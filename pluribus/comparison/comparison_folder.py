"""A comparison: methods × seeds on the same data, within the same budget, evaluated alike, and one page to decide by.

The folder of a comparison is a grid of runs (grid.yaml, one folder for each run), compare.yaml with what they are evaluated by,
costs.json, and at the end results.json, results.csv, results.md, picture.svg and report.html. What is there is not computed
again. One that is tuned also has the files that `comparison.tuning` describes.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..core.errors import FileError
from ..file_formats.comparison_files import CompareFile, CostsFile
from ..file_formats.reading import read_json, read_yaml, write_json, write_yaml
from ..runs.config import ConfigError, build_config, find_role, parse_method
from ..runs.evaluation import (
    EvaluationSettings,
    build_evaluation_settings,
    measure_cost,
    rebuild_network,
    select_comparison_rows,
)
from ..runs.grid import Grid, Report
from ..runs.loading import load_run
from ..runs.run_folder import Run
from ..runs.training import convert_network, load_data, resolve_config
from .budgets import check_budget, check_length, fit_to_budget
from .notes import describe_few_seeds, describe_many_methods, describe_missing_reference
from .result_collection import collect_results
from .roles import find_baseline, find_reference, group_finished, is_baseline, is_reference
from .students import add_students, describe_student_settings, find_teacher, parse_student_settings
from .tuning import Tuning, check_tuning, write_trials

Json = dict[str, Any]


@dataclass(frozen=True)
class ComparisonFolder:
    """A comparison on disk: `plan` or `open` it, then `run` it."""

    grid: Grid
    about: Json
    """The content of compare.yaml: budget, judging, command, notes, and of one that is tuned, tune."""
    tuning: Json | None = None
    """The content of tuning.json, once it is known."""

    @property
    def path(self) -> Path:
        return self.grid.path

    @staticmethod
    def plan(
        path: Path,
        options: Mapping[str, Any],
        methods: list[Any],
        seeds: list[int],
        *,
        budget: str = "epochs",
        judging: EvaluationSettings | None = None,
        command: str = "",
        objects: Mapping[str, Any] | None = None,
        tune: int | None = None,
        students: Sequence[Json] = (),
        student: str | Mapping[str, Any] | None = None,
    ) -> "ComparisonFolder":
        """Write the plan into a new folder, after checking data, methods, evaluation and budget.

        `options` are the settings of `Config` that all runs share; `objects` are the networks and data that they name and that
        were passed from Python; `tune` is the number of trials of each method; `students` are methods that learn from the
        reference, with the settings `student` in place of the others'. The baseline is added if `methods` lacks it, and so is
        the reference if there are students. Raises ConfigError, DataError or ModelError before anything is written.
        """
        judging, kind, notes = judging or build_evaluation_settings(), check_budget(budget), []
        choices = [parse_method(method) for method in methods]
        taught = parse_student_settings(student, students, kind)
        baseline, reference = find_role("baseline"), find_role("reference")
        if not any(is_baseline(choice) for choice in choices):
            choices.insert(0, {"name": baseline})
            notes.append(f"{baseline} was added: gains are over one network.")
        if students and not any(is_reference(choice) for choice in choices):
            choices.append({"name": reference})
            notes.append(f"{reference} was added: it teaches the students.")
        notes += describe_student_settings(taught)
        notes += describe_missing_reference(any(is_reference(choice) for choice in choices))
        if len(seeds) < 3:
            notes.append(describe_few_seeds(len(seeds)))
        first = build_config(dict(options) | {"method": {"name": baseline}, "seed": seeds[0]})
        build_config(dict(options) | {"method": {"name": baseline}, "seed": seeds[0]} | taught)  # raises if they make no sense
        check_length(kind, first)
        data = load_data(first)
        judging.check(data, first.data_dir)
        if not len(data.test) and not first.validation:
            raise ConfigError(f"{data.name} has no test rows, and none are set aside to judge by: set validation above 0")
        if tune is not None:
            check_tuning(tune, len(choices), data, first)
        notes += describe_many_methods(len(choices) + len(students))
        if not len(data.test):
            notes.append(
                f"{data.name} has no test rows: half of the rows set aside judge, the other half fits temperature and noise."
            )
        common = resolve_config(first, data)
        own, students = {}, list(students)
        for choice in [*choices, *students]:
            config = common.model_copy(update={"method": build_config(dict(options) | {"method": choice}).method})
            try:
                own[str(choice)] = fit_to_budget(config, data, kind)
            except ConfigError as error:
                if len(methods) < 2 or kind == "epochs":
                    raise
                choices, students = ([each for each in listed if each != choice] for listed in (choices, students))
                notes.append(f"Left out: {error}.")
        with torch.random.fork_rng(devices=[]):
            convert_network(common, data)  # raises if the network does not fit the data
        teacher = find_teacher(choices) if students else {}
        grid = Grid.plan(path, dict(options), choices, seeds, judging, lambda config: own[str(config.method)], objects)
        if students:
            grid = add_students(grid, options, students, teacher, seeds, lambda choice: own[str(choice)], taught)
        about = {"budget": kind, "judging": judging.model_dump(mode="json"), "command": command, "notes": notes}
        if tune is not None:
            about["tune"] = write_trials(path, choices, tune, seeds, common, data, lambda made: fit_to_budget(made, data, kind))
        write_yaml(path / "compare.yaml", about)
        return ComparisonFolder(grid, about)

    @staticmethod
    def open(path: Path, objects: Mapping[str, Any] | None = None) -> "ComparisonFolder":
        """Open a comparison that was planned before. Raises FileError if the folder holds none."""
        if not (path / "compare.yaml").is_file():
            raise FileError(f"{path} is no comparison: it has no compare.yaml")
        about = read_yaml(path / "compare.yaml", CompareFile)
        grid = Grid.open(path, build_evaluation_settings(**about["judging"]), objects)
        if not any(is_baseline(cell.options["method"]) and not cell.is_student for cell in grid.cells):
            raise FileError(f"{path / 'grid.yaml'} is damaged, no run is of {find_role('baseline')}: {CompareFile.cure}")
        return ComparisonFolder(grid, about)

    def run(self, workers: str, report: Report | None = None, announce: Callable[[str], None] = lambda _: None) -> Json:
        """Train and evaluate what is missing, measure costs while nothing else runs, and write and return the results.

        `report` is called with the states of the runs, `announce` with a sentence about each later step.
        """
        return self.tune(workers, report).judge(workers, report, announce)

    def tune(self, workers: str, report: Report | None) -> "ComparisonFolder":
        """Run the trials that are missing, and return the comparison with what was chosen; itself, if it is not tuned."""
        plan = self.about.get("tune")
        if plan is None:
            return self
        tuning = Tuning.open(self.grid, plan["trials"], plan["score"])
        chosen = tuning.run(workers, report)
        return replace(self, grid=tuning.apply(chosen), tuning=chosen)

    def judge(self, workers: str, report: Report | None, announce: Callable[[str], None]) -> Json:
        """What `run` does once the settings of all runs are known."""
        from ..reports import write_report

        self.grid.run(workers, report, whole=False)
        announce("measuring latency and memory")
        costs = self.measure_costs(announce)
        announce("drawing intervals")
        results = self.collect_results(costs)
        announce("writing the page")
        write_report(results, self.path)
        return results

    # --- what the folder holds ------------------------------------------------------------------------------------

    def measure_costs(self, announce: Callable[[str], None]) -> Json:
        """Measure the first run of each method, one after the other. The base network is that of the baseline's runs."""
        place = self.path / "costs.json"
        known: Json = {}
        if place.is_file():
            try:
                known = read_json(place, CostsFile)
            except FileError as error:
                warnings.warn(f"the costs are measured anew, as {error}", stacklevel=2)
        base = next(cell for cell in self.grid.cells if cell.method == self.baseline)
        for method, cells in group_finished(self.grid).items():
            if method in known:
                continue
            announce(f"measuring latency and memory: {method}")
            run = Run(self.path / cells[0].name)
            made, config, about, preparation = load_run(run)
            data, part, _ = select_comparison_rows(config, about, preparation)
            config = config.model_copy(update={"model": base.options["model"] or config.model})
            known[method] = measure_cost(made, rebuild_network(run, config, data), data, part)
            write_json(place, known)
        return known

    def collect_results(self, costs: Json) -> Json:
        """Everything that results.json holds, from the finished runs and the measured costs."""
        return collect_results(self.grid, self.about, costs) | ({"tuning": self.tuning} if self.tuning else {})

    @property
    def baseline(self) -> str:
        """The method that gains are measured from."""
        return find_baseline(self.grid)

    @property
    def reference(self) -> str:
        """The method whose gain is the whole."""
        return find_reference(self.grid)
