"""Running the table benchmark: which cells there are, on the engine of `pluribus.experiments`, and what they found together.

<folder>/settings.json    what all cells share; other settings need another folder, while tables and contenders may be added
<folder>/cells/<cell>/    see `cells`
<folder>/tables.json      everything that was found, with ranks and leads
<folder>/tables.md        the page
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import FileError, PluribusError
from ..core.files import restore_number, write_file
from ..data.catalog import SETS
from ..experiments import Job, describe_unfinished, read_failure, run_jobs
from ..file_formats.reading import read_json, write_json
from ..file_formats.table_benchmark_files import CellFile, SettingsFile, TablesFile, TrialsFile
from ..runs.choices import parse_choice
from .cells import FOUND, TRIALS, run_cell
from .contender import Contender, Limits
from .contenders import find_contender, find_contenders
from .ranking import RANKED, find_leads, rank_contenders
from .rows import check_table, count_splits

Json = dict[str, Any]
NAME, PAGE, SETTINGS, CELLS = "tables.json", "tables.md", "settings.json", "cells"
UCI = tuple(name for name in SETS if name.startswith("uci-"))
MOST = 100_000


class TableBenchmarkError(PluribusError, ValueError):
    """The benchmark cannot be run as asked."""


@dataclass(frozen=True)
class Benchmark:
    """Tables, contenders and limits; `SMOKE` makes it small."""

    tables: tuple[str, ...] = UCI
    contenders: tuple[str, ...] | None = None
    splits: int = 10
    trials: int = 20
    epochs: int = 200
    patience: int = 16
    trees: int = 2000
    tree_patience: int = 50
    rows: int | None = None
    data_dir: str | None = None

    def __post_init__(self) -> None:
        for name in ("splits", "trials", "epochs", "patience", "trees", "tree_patience"):
            if not 1 <= getattr(self, name) <= MOST:
                raise TableBenchmarkError(f"{name} must be from 1 to {MOST:,}, got {getattr(self, name):,}")
        if self.rows is not None and self.rows < 20:
            raise TableBenchmarkError(f"rows must be at least 20, got {self.rows}: some of them are for validation")
        if not self.tables:
            raise TableBenchmarkError(f"tables must be names or paths between commas, such as {', '.join(UCI)}")

    @property
    def limits(self) -> Limits:
        return Limits(self.epochs, self.patience, self.trees, self.tree_patience)

    @property
    def settings(self) -> Json:
        """What all cells of a folder share."""
        return {"trials": self.trials, "rows": self.rows} | self.limits._asdict()


SMOKE: Mapping[str, Any] = {
    "tables": ("blundell",),
    "splits": 2,
    "trials": 2,
    "epochs": 2,
    "patience": 2,
    "trees": 10,
    "tree_patience": 5,
    "rows": 200,
}
"""The settings of `--smoke`, which shows that everything runs, and nothing else."""


@dataclass(frozen=True)
class Cell:
    """One contender on one split of one table, and its folder."""

    folder: Path
    table: Json
    title: str
    split: int
    contender: str

    @property
    def name(self) -> str:
        return f"{self.title}, split {self.split}: {self.contender}"


def plan_cells(benchmark: Benchmark, folder: Path) -> tuple[list[Cell], list[Contender]]:
    """Every cell whose contender is installed, and all contenders.

    Raises: DataError, ContenderError or ConfigError if a table or a contender makes no sense.
    """
    contenders = find_contenders(benchmark.contenders)
    tables: dict[str, Json] = {}
    for text in benchmark.tables:
        choice = parse_choice(text)
        path = Path(choice["name"]).expanduser()
        if choice["name"] not in SETS and path.exists():
            choice["name"] = str(path.resolve())  # a worker may stand in another folder
        title = choice["name"] if choice["name"] in SETS else path.name.split(".")[0]
        if title in tables:
            raise TableBenchmarkError(f"two tables are called {title}: give each file a name of its own")
        check_table(choice, benchmark.data_dir)
        tables[title] = choice
    cells = [
        Cell(folder / CELLS / clean_name(f"{title}-{split}-{contender.name}"), table, title, split, contender.name)
        for title, table in tables.items()
        for split in range(count_splits(table, benchmark.splits))
        for contender in contenders
        if not contender.find_missing()
    ]
    return cells, contenders


def clean_name(text: str) -> str:
    """A name for a folder.

    >>> clean_name("table-0-mimo:members=2")
    'table-0-mimo-members-2'
    """
    return re.sub(r"[^\w.-]+", "-", text)


def run_cells(
    benchmark: Benchmark, folder: Path, about: Json, workers: str = "1", report: Callable[[Json], None] | None = None
) -> Json:
    """Run the cells that are not finished, write results and page, and return the results.

    `report` is called with how many cells and trials are done. Raises: FileError if the folder holds a benchmark with other
    settings, or something else.
    """
    cells, contenders = plan_cells(benchmark, folder)
    prepare_folder(benchmark, folder)
    jobs = [
        Job(
            cell.name,
            cell.folder.resolve(),
            run_cell,
            (
                str(cell.folder.resolve()),
                *(cell.table, cell.title, cell.split, cell.contender),
                *(benchmark.trials, benchmark.limits, benchmark.rows, benchmark.data_dir),
            ),
        )
        for cell in cells
    ]
    unfinished = run_jobs(
        jobs,
        workers,
        is_finished=lambda job: (job.folder / FOUND).is_file(),
        read_states=lambda: read_progress(cells),
        report=report,
    )
    results = collect_results(folder, contenders, about)
    save_results(folder, results)
    if len(unfinished) == len(cells) and cells:
        raise TableBenchmarkError(describe_unfinished(unfinished, len(cells), "cells"))
    return results


def prepare_folder(benchmark: Benchmark, folder: Path) -> None:
    """Create the folder, or check that it holds a benchmark with these settings. Raises FileError."""
    if folder.is_file():
        raise FileError(f"{folder} is a file: name a folder with --out")
    place = folder / SETTINGS
    if place.is_file():
        known = read_json(place, SettingsFile)
        for name, value in benchmark.settings.items():
            if known[name] != value:
                change = f"{name} {known[name]}, and now it is {value}"
                raise FileError(f"{folder} holds a benchmark with {change}: name another folder with --out")
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise FileError(f"{folder} is not empty, and holds no benchmark of tables: name another folder with --out")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}; name another with --out") from error
    write_json(place, benchmark.settings)


def read_progress(cells: Sequence[Cell]) -> Json:
    """How many cells are finished or have failed, and what runs, with its trials so far."""
    ended = [cell for cell in cells if (cell.folder / FOUND).is_file() or read_failure(cell.folder)]
    running = {
        cell.name: len(read_json(cell.folder / TRIALS, TrialsFile)["trials"])
        for cell in cells
        if cell not in ended and (cell.folder / TRIALS).is_file()
    }
    return {"done": len(ended), "total": len(cells), "running": running}


def collect_results(folder: Path, contenders: Sequence[Contender], about: Json) -> Json:
    """Everything that the cells of a folder found, with ranks and leads of the contenders that finished all of them."""
    found = [read_json(place, CellFile) for place in sorted((folder / CELLS).glob(f"*/{FOUND}"))]
    known = {contender.name: contender for contender in contenders}
    known |= {name: find_contender(name) for name in sorted({cell["contender"] for cell in found} - known.keys())}
    places = sorted({(cell["table"], cell["split"]) for cell in found})
    takers: list[Json] = []
    for name, contender in known.items():
        own = {(cell["table"], cell["split"]) for cell in found if cell["contender"] == name}
        lacking = [place for place in places if place not in own]
        reason = f"finished {len(own)} of {len(places)} splits" if lacking or not places else ""
        if not own and contender.find_missing():
            reason = f"skipped: {contender.find_missing()}"
        takers.append({"name": name, "title": contender.title, "ours": contender.is_ours, "reason": reason})
    ranked = [taker["name"] for taker in takers if not taker["reason"]]
    ranks: Json = {}
    leads: Json = {}
    if ranked:
        shares = measure_test_shares(found)
        for score in RANKED:
            values = gather_scores(found, ranked, score)
            ranks[score], leads[score] = rank_contenders(values, shares), find_leads(values, shares, score)
    head = {"format": 1, "versions": about.get("versions", {}), "machine": about.get("machine", {})}
    settings = read_json(folder / SETTINGS, SettingsFile)
    return head | {"settings": settings, "contenders": takers, "cells": found, "ranks": ranks, "leads": leads}


def gather_scores(cells: Sequence[Json], contenders: Sequence[str], score: str) -> dict[str, dict[str, list[float]]]:
    """table → contender → its score on each split, NaN where it is not finite."""
    by_place = {(cell["table"], cell["split"], cell["contender"]): cell["scores"][score] for cell in cells}
    splits: dict[str, list[int]] = {}
    for table, split in sorted({(cell["table"], cell["split"]) for cell in cells}):
        splits.setdefault(table, []).append(split)
    return {
        table: {name: [restore_number(by_place[table, split, name]) for split in own] for name in contenders}
        for table, own in splits.items()
    }


def measure_test_shares(cells: Sequence[Json]) -> dict[str, float]:
    """The number of test rows of each table for each row that is trained on or validated by."""
    sizes = {cell["table"]: cell["rows"] for cell in cells}
    return {table: rows["test"] / (rows["train"] + rows["validation"]) for table, rows in sizes.items()}


def save_results(folder: Path, results: Json) -> None:
    """Write tables.json, and the page that is made from it."""
    from .page import format_page

    write_json(folder / NAME, results)
    write_file(folder / PAGE, format_page(read_json(folder / NAME, TablesFile)))
