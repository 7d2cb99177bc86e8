"""What commands print: tables on the terminal."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

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
    console.print(f"{done['epochs']} epochs, {done['seconds']:.0f} s. The run is in {path}", highlight=False, soft_wrap=True)
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
def watching(grid: Any) -> Iterator[None]:
    """The live table of a grid; in a log, nothing until the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    done = threading.Event()
    with Live(grid_table(grid.states()), console=console, transient=True, auto_refresh=False) as live:

        def draw() -> None:
            while not done.wait(0.5):
                live.update(grid_table(grid.states()), refresh=True)

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def grid_result(grid: Any, states: list[dict[str, Any]]) -> None:
    console = Console()
    console.print(grid_table(states))
    console.print(f"The grid is in {grid.path}: grid.csv is this table", highlight=False, soft_wrap=True)
