"""What `pluribus train` prints: a run, or a grid of runs."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from ..runs.run_folder import FEW_STEPS
from .show_scores import SCORE_NAMES, format_score, make_score_table


def print_run(result: dict[str, Any], path: Path) -> None:
    """Print the scores of a trained run and where it is."""
    console = Console()
    if result["scores"]:
        console.print(f"[bold]{result['title']}[/], {result['split']} rows", highlight=False)
        console.print(make_score_table(result["scores"]))
    epochs = f"{result['epochs']} epoch{'s' if result['epochs'] != 1 else ''}"
    console.print(f"{epochs}, {result['seconds']:.0f} s. The run is in {path}", highlight=False, soft_wrap=True)
    if result.get("steps", FEW_STEPS) < FEW_STEPS:
        console.print(f"the run took only {result['steps']} steps: more --epochs may help", style="yellow", highlight=False)
    console.print(
        f"next: pluribus evaluate {path}  ·  pluribus predict {path} FILES", style="dim", highlight=False, soft_wrap=True
    )


def make_grid_table(states: list[dict[str, Any]]) -> Table:
    """Return a table with a row for each run: method, seed, state and last scores."""
    names = list(dict.fromkeys(name for state in states for name in state["scores"]))
    table = Table()
    for column in ("method", "seed", "state"):
        table.add_column(column)
    for name in names:
        table.add_column(SCORE_NAMES.get(name, name), justify="right")
    table.add_column("s", justify="right")
    for state in states:
        cells = [format_score(name, state["scores"][name]) if name in state["scores"] else "" for name in names]
        seconds = f"{state['seconds']:.0f}" if "seconds" in state else ""
        table.add_row(state["method"], str(state["seed"]), state["state"], *cells, seconds)
    return table


@contextlib.contextmanager
def grid_progress(grid: Any) -> Iterator[Any]:
    """Yield a function that shows the states of a grid: a live table on a terminal, a line for each finished run in a log."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Live(make_grid_table(grid.states()), console=console, transient=True, auto_refresh=False) as live:
            yield lambda states: live.update(make_grid_table(states), refresh=True)
        return
    printed: set[tuple[str, int]] = set()

    def report(states: list[dict[str, Any]]) -> None:
        for state in states:
            if state["state"] in ("done", "failed") and (key := (state["method"], state["seed"])) not in printed:
                printed.add(key)
                known = state["scores"].items() if state["state"] == "done" else ()
                line = "  ".join(f"{SCORE_NAMES.get(name, name)} {format_score(name, value)}" for name, value in known)
                print(
                    f"{len(printed)}/{len(states)}  {state['method']}, seed {state['seed']}: {line or state['state']}",
                    file=sys.stderr,
                )

    yield report


def print_grid(grid: Any, states: list[dict[str, Any]]) -> None:
    """Print the table of a finished grid and where it is."""
    console = Console()
    console.print(make_grid_table(states))
    console.print(f"The grid is in {grid.path}: grid.csv is this table", highlight=False, soft_wrap=True)
