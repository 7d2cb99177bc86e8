"""The main job: methods × seeds on the same data, within the same budget, judged alike, and one page to decide by.

A comparison's folder is a grid of runs (grid.yaml, a folder a run), compare.yaml with what they are judged by, costs.json, and
in the end results.json, results.csv, results.md, picture.svg and report.html. What is there is never done again.
"""

import contextlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from ..core.errors import FileError
from ..core.files import format_json, write_file
from ..core.spec import Spec
from . import budget as budgets
from .config import Config, ConfigError, chosen, configured, read, spec
from .evaluate import measured, rows_to_compare
from .folder import FEW_STEPS, Run
from .grid import Cell, Grid, Report
from .judging import Judging, asked
from .opening import trained
from .results import BASE, BEST, Draws, combined, number, rows_of
from .train import loaded, resolved
from .verdict import verdict

Json = dict[str, Any]
MANY = 5


@dataclass(frozen=True)
class Comparison:
    grid: Grid
    about: Json
    """What compare.yaml says: budget, judging, command, notes."""

    @property
    def path(self) -> Path:
        return self.grid.path

    @staticmethod
    def planned(
        path: Path,
        options: Mapping[str, Any],
        methods: list[Any],
        seeds: list[int],
        *,
        budget: str = "epochs",
        judging: Judging | None = None,
        command: str = "",
    ) -> "Comparison":
        """Everything checked before the first run starts: data, methods, what to judge by, what each method may cost."""
        judging, kind, notes = judging or asked(), budgets.check(budget), []
        choices = [chosen(method) for method in methods]
        if BASE not in [choice["name"] for choice in choices]:
            choices.insert(0, {"name": BASE})
            notes.append(f"{BASE} was added: gains are over one network.")
        if not any(standard(choice) for choice in choices):
            notes.append(f"There is no {BEST} here: what share of its gain a method keeps is not known.")
        if len(seeds) < 3:
            notes.append(few(len(seeds)))
        first = configured(dict(options) | {"method": {"name": BASE}, "seed": seeds[0]})
        data = loaded(first)
        judging.check(data, first.data_dir)
        if not len(data.test) and not first.validation:
            raise ConfigError(f"{data.name} has no test rows, and none are set aside to judge by: set validation above 0")
        if len(choices) > MANY:
            notes.append(f"An interval is for one comparison: of {len(choices)} methods one may be beyond the noise by chance.")
        if not len(data.test):
            notes.append(
                f"{data.name} has no test rows: half of the rows set aside judge, the other half fits temperature and noise."
            )
        common = resolved(first, data)
        own = {}
        for choice in list(choices):
            config = common.model_copy(update={"method": configured(dict(options) | {"method": choice}).method})
            try:
                own[str(choice)] = budgets.given(config, data, kind)
            except ConfigError as error:
                if len(methods) < 2 or kind == "epochs":
                    raise
                choices.remove(choice)
                notes.append(f"Left out: {error}.")
        grid = Grid.planned(path, dict(options), choices, seeds, judging, lambda config: own[str(config.method)])
        about = {"budget": kind, "judging": judging.model_dump(mode="json"), "command": command, "notes": notes}
        write_file(path / "compare.yaml", yaml.safe_dump(about, sort_keys=False, allow_unicode=True))
        return Comparison(grid, about)

    @staticmethod
    def opened(path: Path) -> "Comparison":
        if not (path / "compare.yaml").is_file():
            raise FileError(f"{path} is no comparison: it has no compare.yaml")
        about = read(path / "compare.yaml")
        try:
            budgets.check(about["budget"])
            judging = asked(**about["judging"])
        except (KeyError, TypeError) as error:
            raise FileError(f"{path / 'compare.yaml'} is damaged: take it from a copy, or begin anew") from error
        return Comparison(Grid.opened(path, judging), about)

    def run(self, workers: str, report: Report | None = None, told: Callable[[str], None] = lambda _: None) -> Json:
        """Train and judge what is not yet; then, when nothing else runs, measure costs; write all. `told` hears of it."""
        from ..reports import write_report

        self.grid.run(workers, report, whole=False)
        told("measuring latency and memory")
        costs = self.costs(told)
        told("drawing intervals")
        results = self.results(costs)
        told("writing the page")
        write_report(results, self.path)
        return results

    # --- what the folder holds ------------------------------------------------------------------------------------

    def by_method(self) -> dict[str, list[Cell]]:
        """The runs that are finished and judged, of every method that has some."""
        found: dict[str, list[Cell]] = {}
        for cell in self.grid.cells:
            if self.grid.finished(cell):
                found.setdefault(cell.method, []).append(cell)
        return found

    def costs(self, told: Callable[[str], None]) -> Json:
        """Measured one after the other, on the first run of each method."""
        place = self.path / "costs.json"
        known: Json = {}
        if place.is_file():
            with contextlib.suppress(ValueError):  # a damaged one is measured anew
                known = dict(json.loads(place.read_text()))
        for method, cells in self.by_method().items():
            if method in known:
                continue
            told(f"measuring latency and memory: {method}")
            made, config, about, preparation = trained(Run(self.path / cells[0].name))
            data, part, _ = rows_to_compare(config, about, preparation)
            known[method] = measured(made, self.base_config(config), data, part)
            write_file(place, format_json(known))
        return known

    def base_config(self, config: Config) -> Config:
        """With the network of the single method, to which costs are ratios: a budget may have made its own narrower."""
        single = next(cell for cell in self.grid.cells if cell.method == BASE)
        return config.model_copy(update={"model": single.options["model"] or config.model})

    def results(self, costs: Json) -> Json:
        finished = self.by_method()
        judged = {
            method: {cell.seed: Run(self.path / cell.name).read_json("judgement.json") for cell in cells}
            for method, cells in finished.items()
        }
        draws = {name: self.draws(finished, name) for name in ("nll", "right", "brier", "square")}
        nll = draws["nll"]
        left = [name for name in finished if nll is not None and name not in nll.values]
        methods = [self.method(name, cells, judged, costs.get(name), draws) for name, cells in finished.items()]
        facts = Run(self.path / next(iter(finished.values()))[0].name)
        data = facts.read_json("data.json")
        config = configured(read(facts.config))
        model = config.model["name"] if config.model else ""
        return {
            "format": 1,
            "title": f"{data['name']} · {model}",
            "command": self.about["command"],
            "data": {key: data[key] for key in ("name", "task", "classes", "shape", "train", "test")},
            "judged_by": "test" if data["test"] else "validation",
            "model": model,
            "budget": {"kind": self.about["budget"], "text": budgets.TEXTS[self.about["budget"]]},
            "seeds": sorted({cell.seed for cell in self.grid.cells}),
            "settings": self.settings() | {"judging": self.about["judging"]},
            "seconds": round(sum(method["seconds"]["mean"] * len(method["runs"]) for method in methods), 1),
            "methods": methods,
            "recommendation": verdict(methods, nll) if nll else [],
            "notes": [*self.about["notes"], *self.short(finished), *unpaired(left), *self.no_share(nll), *self.complaints()],
        } | facts.read_json("about.json")

    def settings(self) -> Json:
        """What all runs share."""
        options = [cell.options for cell in self.grid.cells]
        return {
            key: Path(str(value)).name if key == "data_dir" and value else value
            for key, value in options[0].items()
            if key not in ("method", "seed") and all(each[key] == value for each in options)
        }

    def draws(self, finished: dict[str, list[Cell]], column: str) -> Draws | None:
        """Of the methods that have finite numbers for all seeds that the single network has."""
        rows = {
            method: {cell.seed: table[column] for cell in cells if column in (table := rows_of(self.path / cell.name))}
            for method, cells in finished.items()
        }
        seeds = sorted(rows.get(BASE, {}))
        sound = {
            method: {seed: each[seed] for seed in seeds}
            for method, each in rows.items()
            if all(seed in each and bool(torch.isfinite(each[seed]).all()) for seed in seeds)
        }
        shared = bool(Run(self.path / finished[BASE][0].name).read_json("data.json")["test"]) if seeds else True
        return Draws(sound, shared=shared) if seeds and BASE in sound else None

    def method(self, name: str, cells: list[Cell], judged: Json, cost: Json | None, draws: dict[str, Draws | None]) -> Json:
        """Everything about one method."""
        run = Run(self.path / cells[0].name)
        results = [Run(self.path / cell.name).read_json("result.json") for cell in cells]
        config = configured(read(run.config))
        found = combined(judged[name], judged.get(BASE, {}))
        for score, column in (("nll", "nll"), ("accuracy", "right"), ("brier", "brier")):
            drawn = draws[column]
            if drawn and name in drawn.values and score in found["scores"]:
                interval = drawn.interval(name)
                found["scores"][score] |= {"low": interval.low, "high": interval.high}
        nll = draws["nll"]
        known = nll.values if nll else {}
        gain = nll.less(name, BASE) if nll and name in known and BASE in known and name != BASE else None
        share = nll.share(name, BASE, self.best) if nll and gain and self.best in known else None
        doc = inspect.getdoc(Spec.registry[config.spec.name]) or ""
        if cost is not None and cost["training_flops"] is not None:  # of all steps; what was measured is of one
            cost = cost | {"training_flops": cost["training_flops"] * results[0]["epochs"] / self.base_epochs(results[0])}
        return {
            "name": name,
            "spec": str(config.spec),
            "about": doc.splitlines()[0],
            "epochs": results[0]["epochs"],
            "model": config.model,
            **found,
            "gain": gain._asdict() if gain else None,
            "share": share._asdict() if share else None,
            "cost": cost,
            "seconds": number([result["seconds"] for result in results]),
            "runs": [cell.name for cell in cells],
        }

    def base_epochs(self, otherwise: Json) -> int:
        """How long the single network was trained."""
        cells = self.by_method().get(BASE)
        return (Run(self.path / cells[0].name).read_json("result.json") if cells else otherwise)["epochs"]

    @property
    def best(self) -> str:
        """The deep ensemble whose gain is the whole; of several that are finished, the one with most members."""
        finished = self.by_method()
        found = [cell for cell in self.grid.cells if standard(cell.options["method"])]
        found.sort(key=lambda cell: (cell.method in finished, spec(cell.options["method"]).members), reverse=True)  # type: ignore[attr-defined]
        return found[0].method if found else BEST

    def no_share(self, nll: Draws | None) -> list[str]:
        """Why nobody has a share of the deep ensemble's gain, if so."""
        if nll is None or not {BASE, self.best} <= set(nll.values) or nll.less(self.best, BASE).low > 0:
            return []
        return [f"{self.best} gains nothing beyond the noise here: what share of its gain a method keeps cannot be said."]

    def short(self, finished: dict[str, list[Cell]]) -> list[str]:
        """Whether runs were so short that methods which need longer are not at their best."""
        steps = [Run(self.path / cells[0].name).read_json("result.json")["steps"] for cells in finished.values()]
        if min(steps) >= FEW_STEPS:
            return []
        return [f"Runs of {min(steps)} steps only: more --epochs may well help, and change the order."]

    def complaints(self) -> list[str]:
        """What failed, and why."""
        lost = [cell for cell in self.grid.cells if not self.grid.finished(cell)]
        why = {cell.name: self.grid.failed(cell) for cell in lost}
        return [f"{name} failed: {reason}" if reason else f"{name} is not finished." for name, reason in why.items()]


def unpaired(methods: list[str]) -> list[str]:
    """Which methods cannot be compared in pairs."""
    return [f"{name} lacks a seed, or has an infinite NLL: no gain, share or recommendation for it." for name in methods]


def standard(choice: Json) -> bool:
    """Whether it is the deep ensemble that others are measured by: of plain networks, with any number of members."""
    return choice["name"].replace("_", "-") == BEST and "of" not in choice


def few(seeds: int) -> str:
    """What so few seeds cannot tell."""
    if seeds == 1:
        return "One seed: intervals are over rows alone, and say nothing about another training run."
    return f"{seeds} seeds tell little about how much training runs differ: intervals are wide. Use more --seeds."


def every() -> list[str]:
    """All methods, the single network first and the deep ensemble last."""
    others = sorted(name for name in Spec.registry if name not in (BASE, BEST))
    return [BASE, *others, BEST]
