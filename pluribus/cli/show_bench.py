"""What `pluribus bench` prints: the last run of each part, in 80 columns."""

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ..bench.networks import NETWORKS
from ..bench.page import format_line, format_middle_half, format_ratio
from ..bench.run import FEW
from ..bench.table import TABLE_WORKLOADS
from ..bench.targets import get_verdict
from ..bench.workloads import TITLES
from ..core.terminal import create_console

Json = dict[str, Any]
VERDICTS: dict[str, str | Text] = {"met": "met", "within noise": "within noise", "missed": Text("MISSED", "bold red"), "": ""}


def print_bench(results: Json, folder: Path) -> None:
    console = create_console()
    last = max(results["runs"], default="")
    own = {part: [row for row in results[part] if row["run"] == last] for part in ("table", "growth", "targets")}
    for network in dict.fromkeys(row["network"] for row in own["table"]):
        console.print(make_cost_table(network, [row for row in own["table"] if row["network"] == network]))
    if own["growth"]:
        console.print(make_growth_table(own["growth"]))
    if own["targets"]:
        console.print(make_target_table(own["targets"]))
        few = results["runs"][last]["settings"]["repeats"]
        if few < FEW:
            console.print(f"{few} repeats are too few for a verdict: take at least {FEW}", style="yellow")
    console.print("Ratios to the base network: medians, and the middle half of the repeats.", style="dim")
    console.print(f"All results are in {folder / 'bench.md'}", soft_wrap=True)


def make_narrow_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def make_target_table(rows: list[Json]) -> Table:
    table = make_narrow_table("Targets", "work", "ratio", "middle half", "target", "")
    for network, work in dict.fromkeys((row["network"], row["work"]) for row in rows):
        table.add_row(Text(f"{NETWORKS[network].title}, {TITLES[work]}", "dim"))
        for row in rows:
            if (row["network"], row["work"]) == (network, work):
                half = "counted" if row["time"] is None else format_middle_half(row["time"])
                most = "" if row["most"] is None else f"≤ {format_ratio(row['most'])}"
                table.add_row(f"  {row['name']}", format_ratio(row["value"]), half, most, VERDICTS[get_verdict(row)])
    return table


def make_cost_table(network: str, rows: list[Json]) -> Table:
    """Return a table with the costs of a training step and of a prediction side by side."""
    table = make_narrow_table(NETWORKS[network].title, "method", "step", "memory", "FLOPs", "forward", "memory", "FLOPs")
    for method in dict.fromkeys(row["method"] for row in rows):
        found = {row["work"]: row for row in rows if row["method"] == method}
        cells = [(row["time"]["median"], row["memory"], row["flops"]) for row in (found[work] for work in TABLE_WORKLOADS)]
        table.add_row(method, *(format_ratio(value) for three in cells for value in three))
    return table


def make_growth_table(rows: list[Json]) -> Table:
    table = make_narrow_table("Growth of time", "method", "line")
    for network, work in dict.fromkeys((row["network"], row["work"]) for row in rows):
        table.add_row(Text(f"{NETWORKS[network].title}, {work}", "dim"))
        for row in rows:
            if (row["network"], row["work"]) == (network, work):
                table.add_row(f"  {row['method']}", format_line(row["lines"]["time"], row["axis"]))
    return table
