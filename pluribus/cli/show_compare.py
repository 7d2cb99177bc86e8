"""What `pluribus compare` prints, in 80 columns."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from .show_scores import SCORE_NAMES, SHARES, format_score
from .show_train import grid_progress


def print_comparison(results: dict[str, Any], path: Path) -> None:
    """Print the table, the recommendation, and where the page is."""
    console = Console()
    main = "accuracy" if results["data"]["task"] == "classification" else "rmse"
    names = [main, "nll", "ece"] if main == "accuracy" else [main, "nll", "crps"]
    seeds = f"{len(results['seeds'])} seed{'s' * (len(results['seeds']) != 1)}"
    console.print(f"[bold]{results['title']}[/], equal {results['budget']['text']}, {seeds}", highlight=False)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)  # narrow: it must fit 80 columns
    table.add_column("method", overflow="fold")
    for name in names:
        title = {"accuracy": "acc %", "ece": "ECE %"}.get(name, SCORE_NAMES.get(name, name))
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("kept %", "latency", "weights"):
        table.add_column(title, justify="right", no_wrap=True)
    for method in results["methods"]:
        scores = [format_mean(name, method["scores"][name], short=name == "ece") for name in names]
        table.add_row(method["name"], *scores, *format_gain_and_cost(method))
    console.print(table)
    console.print(
        "± is the standard deviation over seeds. Kept is the part of the deep ensemble's NLL gain over one network, with its "
        "95 % interval. Latency and deployed weights are ratios to one network.",
        style="dim",
        highlight=False,
    )
    for each in results["recommendation"]:
        limit, choice = each["limit"].capitalize(), each["method"] or "one plain network"
        console.print(f"• {limit}: [bold]{choice}[/]. {each['text']}", highlight=False)
    for note in results["notes"]:
        console.print(note, style="yellow", highlight=False)
    console.print(f"The page: {path / 'report.html'}", highlight=False, soft_wrap=True)


def format_mean(name: str, number: dict[str, Any], short: bool = False) -> str:
    """Return the mean and, unless `short`, its standard deviation over seeds."""
    scale, digits = (100, 1) if name in SHARES else (1, 3)
    if name == "nll" and abs(number["mean"]) < 0.1:
        digits = 4
    more = f" ±{scale * number['std']:.{digits}f}" if len(number["seeds"]) > 1 and not short else ""
    return f"{scale * number['mean']:.{digits}f}{more}"


def format_gain_and_cost(method: dict[str, Any]) -> list[str]:
    """Return the share of the deep ensemble's gain, the latency and the parameters of a method."""
    share, cost = method["share"], method["cost"]
    kept = ""
    if share is not None:
        value, low, high = (f"{100 * share[key]:.0f}" for key in ("value", "low", "high"))
        kept = "100" if share["low"] == share["high"] == 1 else f"{value} ({low} to {high})" if share["value"] > -1 else "worse"
    return [kept, f"{cost['latency']['value']:.2f}" if cost else "", f"{cost['deployed_parameters']:.2f}" if cost else ""]


def make_progress_table(states: list[dict[str, Any]], now: str = "") -> Table:
    """Return a table with a row for each method: how many of its runs are done, and their mean scores so far."""
    names = list(dict.fromkeys(name for state in states for name in state["scores"]))
    done = sum(state["state"] == "done" for state in states)
    table = Table(caption=now or f"{done} of {len(states)} runs done", caption_justify="left")
    table.add_column("method", overflow="fold")
    table.add_column("runs", no_wrap=True)
    for name in names:
        table.add_column(SCORE_NAMES.get(name, name), justify="right", no_wrap=True)
    table.add_column("s", justify="right")
    for method in dict.fromkeys(state["method"] for state in states):
        own = [state for state in states if state["method"] == method]
        scores = {name: [state["scores"][name] for state in own if name in state["scores"]] for name in names}
        busy = [state["state"] for state in own if state["state"] not in ("done", "waiting")]
        ended = sum(state["state"] == "done" for state in own)
        cells = [format_score(name, sum(values) / len(values)) if values else "" for name, values in scores.items()]
        seconds = [state["seconds"] for state in own if "seconds" in state]
        table.add_row(
            method,
            f"{ended}/{len(own)}" + (f"  {busy[0]}" if busy else ""),
            *cells,
            f"{sum(seconds) / len(seconds):.0f}" if seconds else "",
        )
    return table


@contextlib.contextmanager
def comparison_progress(grid: Any) -> Iterator[tuple[Any, Any]]:
    """Yield two functions, one for the states of a comparison and one for its messages: a live table, or lines in a log."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with grid_progress(grid) as report:
            yield report, lambda text: print(text, file=sys.stderr)
        return
    last = grid.states()
    with Live(make_progress_table(last), console=console, transient=True, auto_refresh=False) as live:

        def report(states: list[dict[str, Any]]) -> None:
            last[:] = states
            live.update(make_progress_table(states), refresh=True)

        yield report, lambda text: live.update(make_progress_table(last, text), refresh=True)
