"""A comparison: methods × seeds on the same data, within the same budget, evaluated alike, and one page to decide by.

The folder of a comparison is a grid of runs (grid.yaml, one folder for each run), compare.yaml with what they are evaluated by,
costs.json, and at the end results.json, results.csv, results.md, picture.svg and report.html. What is there is not computed
again.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..core.errors import FileError
from ..core.spec import Spec
from ..file_formats.comparison_files import CompareFile, CostsFile
from ..file_formats.evaluation_files import check_alike
from ..file_formats.reading import read_json, read_yaml, write_json, write_yaml
from ..runs.config import ConfigError, build_config, build_spec, find_role, parse_method, read_config
from ..runs.evaluation import (
    EvaluationSettings,
    build_evaluation_settings,
    measure_cost,
    rebuild_network,
    select_comparison_rows,
)
from ..runs.grid import Cell, Grid, Report
from ..runs.loading import load_run
from ..runs.run_folder import FEW_STEPS, Run
from ..runs.training import convert_network, load_data, resolve_config
from .budgets import TEXTS, check_budget, fit_to_budget
from .recommendation import recommend
from .statistics import PairedBootstrap, combine_seeds, read_row_scores, summarize_seeds

Json = dict[str, Any]
MANY_METHODS = 5


@dataclass(frozen=True)
class ComparisonFolder:
    """A comparison on disk: `plan` or `open` it, then `run` it."""

    grid: Grid
    about: Json
    """The content of compare.yaml: budget, judging, command, notes."""

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
    ) -> "ComparisonFolder":
        """Write the plan into a new folder, after checking data, methods, evaluation and budget.

        `options` are the settings of `Config` that all runs share; `objects` are the networks and data that they name and that
        were passed from Python. The baseline is added if `methods` lacks it. Raises ConfigError, DataError or ModelError before
        anything is written.
        """
        judging, kind, notes = judging or build_evaluation_settings(), check_budget(budget), []
        choices = [parse_method(method) for method in methods]
        baseline, reference = find_role("baseline"), find_role("reference")
        if not any(is_baseline(choice) for choice in choices):
            choices.insert(0, {"name": baseline})
            notes.append(f"{baseline} was added: gains are over one network.")
        if not any(is_reference(choice) for choice in choices):
            notes.append(f"There is no {reference} here: what share of its gain a method keeps is not known.")
        if len(seeds) < 3:
            notes.append(describe_few_seeds(len(seeds)))
        first = build_config(dict(options) | {"method": {"name": baseline}, "seed": seeds[0]})
        data = load_data(first)
        judging.check(data, first.data_dir)
        if not len(data.test) and not first.validation:
            raise ConfigError(f"{data.name} has no test rows, and none are set aside to judge by: set validation above 0")
        if len(choices) > MANY_METHODS:
            notes.append(f"An interval is for one comparison: of {len(choices)} methods one may be beyond the noise by chance.")
        if not len(data.test):
            notes.append(
                f"{data.name} has no test rows: half of the rows set aside judge, the other half fits temperature and noise."
            )
        common = resolve_config(first, data)
        own = {}
        for choice in list(choices):
            config = common.model_copy(update={"method": build_config(dict(options) | {"method": choice}).method})
            try:
                own[str(choice)] = fit_to_budget(config, data, kind)
            except ConfigError as error:
                if len(methods) < 2 or kind == "epochs":
                    raise
                choices.remove(choice)
                notes.append(f"Left out: {error}.")
        with torch.random.fork_rng(devices=[]):
            convert_network(common, data)  # raises if the network does not fit the data
        grid = Grid.plan(path, dict(options), choices, seeds, judging, lambda config: own[str(config.method)], objects)
        about = {"budget": kind, "judging": judging.model_dump(mode="json"), "command": command, "notes": notes}
        write_yaml(path / "compare.yaml", about)
        return ComparisonFolder(grid, about)

    @staticmethod
    def open(path: Path, objects: Mapping[str, Any] | None = None) -> "ComparisonFolder":
        """Open a comparison that was planned before. Raises FileError if the folder holds none."""
        if not (path / "compare.yaml").is_file():
            raise FileError(f"{path} is no comparison: it has no compare.yaml")
        about = read_yaml(path / "compare.yaml", CompareFile)
        grid = Grid.open(path, build_evaluation_settings(**about["judging"]), objects)
        if not any(is_baseline(cell.options["method"]) for cell in grid.cells):
            raise FileError(f"{path / 'grid.yaml'} is damaged, no run is of {find_role('baseline')}: {CompareFile.cure}")
        return ComparisonFolder(grid, about)

    def run(self, workers: str, report: Report | None = None, announce: Callable[[str], None] = lambda _: None) -> Json:
        """Train and evaluate what is missing, measure costs while nothing else runs, and write and return the results.

        `report` is called with the states of the runs, `announce` with a sentence about each later step.
        """
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

    def group_finished(self) -> dict[str, list[Cell]]:
        """The finished and judged runs of every method that has some."""
        found: dict[str, list[Cell]] = {}
        for cell in self.grid.cells:
            if self.grid.is_finished(cell):
                found.setdefault(cell.method, []).append(cell)
        return found

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
        for method, cells in self.group_finished().items():
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
        """Everything that results.json holds; the docstring of `pluribus.reports` describes it."""
        finished = self.group_finished()
        judged = {
            method: {cell.seed: Run(self.path / cell.name).read_json("judgement.json") for cell in cells}
            for method, cells in finished.items()
        }
        check_alike(self.path, judged)
        draws = {name: self.draw_pairs(finished, name) for name in ("nll", "right", "brier", "square")}
        nll = draws["nll"]
        left = [name for name in finished if nll is not None and name not in nll.values]
        methods = [self.describe_method(name, cells, judged, costs.get(name), draws) for name, cells in finished.items()]
        notes = [*self.about["notes"], *self.note_short_runs(finished), *describe_unpaired(left), *describe_not_finite(judged)]
        facts = Run(self.path / next(iter(finished.values()))[0].name)
        data = facts.read_json("data.json")
        config = read_config(facts.config)
        model = config.model["name"].strip("<>") if config.model else ""
        return {
            "format": 1,
            "title": f"{data['name']} · {model}",
            "command": self.about["command"],
            "data": {key: data[key] for key in ("name", "task", "classes", "shape", "train", "test")},
            "judged_by": "test" if data["test"] else "validation",
            "model": model,
            "budget": {"kind": self.about["budget"], "text": TEXTS[self.about["budget"]]},
            "seeds": sorted({cell.seed for cell in self.grid.cells}),
            "settings": self.find_common_settings() | {"judging": self.about["judging"]},
            "seconds": round(sum(method["seconds"]["mean"] * len(method["runs"]) for method in methods), 1),
            "methods": methods,
            "recommendation": recommend(methods, nll, self.baseline) if nll else [],
            "notes": [*notes, *self.note_missing_share(nll), *self.note_failures()],
        } | facts.read_json("about.json")

    def find_common_settings(self) -> Json:
        """The settings that all runs share."""
        options = [cell.options for cell in self.grid.cells]
        return {
            key: Path(str(value)).name if key == "data_dir" and value else value
            for key, value in options[0].items()
            if key not in ("method", "seed") and all(each[key] == value for each in options)
        }

    def draw_pairs(self, finished: dict[str, list[Cell]], column: str) -> PairedBootstrap | None:
        """The bootstrap over the methods that have finite row scores for all seeds of the baseline."""
        rows = {
            method: {cell.seed: table[column] for cell in cells if column in (table := read_row_scores(self.path / cell.name))}
            for method, cells in finished.items()
        }
        seeds = sorted(rows.get(self.baseline, {}))
        sound = {
            method: {seed: each[seed] for seed in seeds}
            for method, each in rows.items()
            if all(seed in each and bool(torch.isfinite(each[seed]).all()) for seed in seeds)
        }
        if not seeds or self.baseline not in sound:
            return None
        shared = bool(Run(self.path / finished[self.baseline][0].name).read_json("data.json")["test"])
        return PairedBootstrap(sound, shared=shared)

    def describe_method(
        self, name: str, cells: list[Cell], judged: Json, cost: Json | None, draws: dict[str, PairedBootstrap | None]
    ) -> Json:
        """The entry of one method in results.json."""
        base = self.baseline
        results = [Run(self.path / cell.name).read_json("result.json") for cell in cells]
        config = read_config(Run(self.path / cells[0].name).config)
        found = combine_seeds(judged[name], judged.get(base, {}))
        for score, column in (("nll", "nll"), ("accuracy", "right"), ("brier", "brier")):
            drawn = draws[column]
            if drawn and name in drawn.values and score in found["scores"]:
                interval = drawn.interval(name)
                found["scores"][score] |= {"low": interval.low, "high": interval.high}
        nll = draws["nll"]
        known = nll.values if nll else {}
        gain = nll.gain(name, base) if nll and name in known and base in known and name != base else None
        share = nll.share(name, base, self.reference) if nll and gain and self.reference in known else None
        doc = inspect.getdoc(Spec.registry[config.spec.name]) or ""
        if cost is not None and cost["training_flops"] is not None:  # one step was measured; the ratio is of all steps
            epochs = results[0]["epochs"] / self.count_base_epochs(results[0])
            cost = cost | {"training_flops": cost["training_flops"] * epochs}
        return {
            "name": name,
            "spec": str(config.spec),
            "about": doc.splitlines()[0] if doc else "",
            "epochs": results[0]["epochs"],
            "model": config.model,
            **found,
            "gain": gain._asdict() if gain else None,
            "share": share._asdict() if share else None,
            "cost": cost,
            "seconds": summarize_seeds([result["seconds"] for result in results]),
            "runs": [cell.name for cell in cells],
        }

    def count_base_epochs(self, otherwise: Json) -> int:
        """The epochs of the baseline."""
        cells = self.group_finished().get(self.baseline)
        return (Run(self.path / cells[0].name).read_json("result.json") if cells else otherwise)["epochs"]

    @property
    def baseline(self) -> str:
        """The method that gains are measured from."""
        return next(cell.method for cell in self.grid.cells if is_baseline(cell.options["method"]))

    @property
    def reference(self) -> str:
        """The method whose gain is the whole; of several that are finished, the one of the greatest size."""
        finished = self.group_finished()
        found = [cell for cell in self.grid.cells if is_reference(cell.options["method"])]
        found.sort(key=lambda cell: (cell.method in finished, measure_size(cell.options["method"])), reverse=True)
        return found[0].method if found else find_role("reference")

    # --- notes ----------------------------------------------------------------------------------------------------

    def note_missing_share(self, nll: PairedBootstrap | None) -> list[str]:
        """A note if no method has a share, because the reference gains nothing."""
        best, base = self.reference, self.baseline
        if nll is None or not {base, best} <= set(nll.values) or nll.gain(best, base).low > 0:
            return []
        return [f"{best} gains nothing beyond the noise here: what share of its gain a method keeps cannot be said."]

    def note_short_runs(self, finished: dict[str, list[Cell]]) -> list[str]:
        """A note if runs took so few steps that slow methods are not at their best."""
        steps = [Run(self.path / cells[0].name).read_json("result.json")["steps"] for cells in finished.values()]
        if min(steps) >= FEW_STEPS:
            return []
        return [f"Runs of {min(steps)} steps only: more --epochs may well help, and change the order."]

    def note_failures(self) -> list[str]:
        """A note for each run that failed or is not finished."""
        lost = [cell for cell in self.grid.cells if not self.grid.is_finished(cell)]
        why = {cell.name: self.grid.read_failure(cell) for cell in lost}
        return [f"{name} failed: {reason}" if reason else f"{name} is not finished." for name, reason in why.items()]


def describe_unpaired(methods: list[str]) -> list[str]:
    """A note for each method that cannot be compared in pairs."""
    return [f"{name} lacks a seed, or has an infinite NLL: no gain, share or recommendation for it." for name in methods]


def describe_not_finite(judged: dict[str, dict[int, Json]]) -> list[str]:
    """A note for each run whose answers to some rows are not finite."""
    return [
        f"{name}, seed {seed} has no finite answer to {one['not_finite']:,} of {one['rows']:,} rows: its scores are not finite."
        for name, seeds in judged.items()
        for seed, one in seeds.items()
        if one.get("not_finite")
    ]


def describe_few_seeds(seeds: int) -> str:
    """A note about what so few seeds cannot show."""
    if seeds == 1:
        return "One seed: intervals are over rows alone, and say nothing about another training run."
    return f"{seeds} seeds tell little about how much training runs differ: intervals are wide. Use more --seeds."


def is_baseline(choice: Json) -> bool:
    """Whether gains are measured from this method."""
    return build_spec(choice).role == "baseline"


def is_reference(choice: Json) -> bool:
    """Whether shares are of this method's gain: a reference of plain networks, of any size."""
    spec = build_spec(choice)
    return spec.role == "reference" and (spec.nested_option is None or getattr(spec, spec.nested_option) is None)


def measure_size(choice: Json) -> int:
    """The members, copies or samples of a method; 1 if it has no such option."""
    spec = build_spec(choice)
    return getattr(spec, spec.size_option) if spec.size_option else 1
