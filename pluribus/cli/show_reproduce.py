"""What `pluribus reproduce` prints, in 80 columns."""

from collections import Counter
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ..core.terminal import assemble_text, create_console
from ..papers import SCALES, select_recipes
from ..papers.page import MARKS, format_duration, format_value
from ..papers.reproduction import Reproduction
from ..papers.results import read_result, save_result

Json = dict[str, Any]
STYLES = {
    "reproduced": "green",
    "direction reproduced": "yellow",
    "not reproduced": "red",
    "not decided at this scale": "dim",
    "not run at this scale": "dim",
}


def rewrite_results(job: Reproduction) -> Json:
    """Result, figure and page of what was measured before: the rules may have changed."""
    return save_result(job.out, job.recipe, job.scale, job.read_cells())


def print_result(found: Json, out: Path) -> None:
    console = create_console()
    duration = f"({format_duration(found['seconds'])})"
    console.print(assemble_text((found["id"], "bold"), f" at scale {found['scale']}: {found['title']} ", (duration, "dim")))
    if found["rows"]:
        console.print(make_result_table(found))
    for each in found["verdicts"]:
        outcome = each["outcome"]
        verdict = (f"{MARKS[outcome]} {outcome}", STYLES[outcome])
        console.print(assemble_text(verdict, f": {each['claim']} ", (f"({each['evidence']})", "dim")))
    paper = found["id"].partition("/")[0]
    console.print(f"All results are in {out / paper / 'README.md'}\n", style="dim", soft_wrap=True)


def make_result_table(found: Json) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns = found["columns"]
    for key, heading in columns.items():
        words = any(isinstance(row.get(key), str) for row in found["rows"])
        table.add_column(heading, overflow="fold", justify="left" if words else "right")
    for row in found["rows"]:
        table.add_row(*(format_value(row.get(key)) for key in columns))
    return table


def print_recipes(out: Path, names: list[str]) -> None:
    """Every recipe and, for each scale, whether it was recorded and what came of it."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("recipe", no_wrap=True)
    table.add_column("what", overflow="fold")
    for scale in SCALES:
        table.add_column(scale, no_wrap=True)
    for recipe in select_recipes(names):
        states = [format_state(read_result(out, recipe, scale)) for scale in SCALES]
        table.add_row(recipe.id, recipe.title, *states)
    console = create_console()
    console.print(table)
    legend = ", ".join(f"{MARKS[outcome]} {outcome}" for outcome in STYLES if outcome in MARKS)
    console.print(f"Claims by verdict: {legend}. A blank was not run.", style="dim")


def format_state(found: Json) -> Text:
    if not found:
        return Text()
    if not found["complete"]:
        return Text("begun", "yellow")
    counts = Counter(verdict["outcome"] for verdict in found["verdicts"])
    parts = [Text(f"{counts[outcome]}{MARKS[outcome]}", STYLES[outcome]) for outcome in STYLES if counts[outcome]]
    return Text(" ").join(parts) if parts else Text("done")
