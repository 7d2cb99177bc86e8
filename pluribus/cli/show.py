"""What commands print: tables on the terminal."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

FEW_STEPS = 300
LONG = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE", "rmse": "RMSE"}


def score(name: str, value: float) -> str:
    return f"{100 * value:.2f} %" if name in ("accuracy", "ece") else f"{value:.4f}"


def scores(values: dict[str, float]) -> Table:
    table = Table(show_header=False)
    for name, value in values.items():
        table.add_row(LONG.get(name, name), score(name, value))
    return table


def result(done: dict[str, Any], path: Path) -> None:
    """The end of a run."""
    console = Console()
    if done["scores"]:
        console.print(f"[bold]{done['title']}[/], {done['split']} rows", highlight=False)
        console.print(scores(done["scores"]))
    epochs = f"{done['epochs']} epoch{'s' if done['epochs'] != 1 else ''}"
    console.print(f"{epochs}, {done['seconds']:.0f} s. The run is in {path}", highlight=False, soft_wrap=True)
    if done.get("steps", FEW_STEPS) < FEW_STEPS:
        console.print(f"it took {done['steps']} steps only: more --epochs may well help", style="yellow", highlight=False)
    console.print(
        f"next: pluribus evaluate {path}  ·  pluribus predict {path} FILES", style="dim", highlight=False, soft_wrap=True
    )


def grid_table(states: list[dict[str, Any]]) -> Table:
    """A row a run: what it is, how far it is, its last scores."""
    names = list(dict.fromkeys(name for state in states for name in state["scores"]))
    table = Table()
    for column in ("method", "seed", "state"):
        table.add_column(column)
    for name in names:
        table.add_column(LONG.get(name, name), justify="right")
    table.add_column("s", justify="right")
    for state in states:
        cells = [score(name, state["scores"][name]) if name in state["scores"] else "" for name in names]
        seconds = f"{state['seconds']:.0f}" if "seconds" in state else ""
        table.add_row(state["method"], str(state["seed"]), state["state"], *cells, seconds)
    return table


@contextlib.contextmanager
def watching(grid: Any) -> Iterator[Any]:
    """What to do with the states of a grid: on a terminal a live table, in a log a line for every run that ends."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Live(grid_table(grid.states()), console=console, transient=True, auto_refresh=False) as live:
            yield lambda states: live.update(grid_table(states), refresh=True)
        return
    told: set[tuple[str, int]] = set()

    def report(states: list[dict[str, Any]]) -> None:
        for state in states:
            if state["state"] in ("done", "failed") and (key := (state["method"], state["seed"])) not in told:
                told.add(key)
                line = "  ".join(f"{LONG.get(name, name)} {score(name, value)}" for name, value in state["scores"].items())
                print(
                    f"{len(told)}/{len(states)}  {state['method']}, seed {state['seed']}: {line or state['state']}",
                    file=sys.stderr,
                )

    yield report


def grid_result(grid: Any, states: list[dict[str, Any]]) -> None:
    console = Console()
    console.print(grid_table(states))
    console.print(f"The grid is in {grid.path}: grid.csv is this table", highlight=False, soft_wrap=True)
