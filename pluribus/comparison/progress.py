"""Progress of a grid or a comparison: a live table on a terminal, one line in a notebook, lines in a log."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from rich.live import Live
from rich.progress import Progress

from ..analysis.score_names import SCORE_NAMES, format_score
from ..core.terminal import clean_text, create_console
from .terminal_tables import ENDED, make_grid_table, make_progress_table


@contextlib.contextmanager
def grid_progress(grid: Any) -> Iterator[Any]:
    """Yield a function that shows the states of a grid: a live table on a terminal, a line for each finished run in a log."""
    console = create_console(stderr=True)
    if console.is_terminal:
        with Live(make_grid_table(grid.read_states()), console=console, transient=True, auto_refresh=False) as live:
            yield lambda states: live.update(make_grid_table(states), refresh=True)
        return
    printed: set[str] = set()

    def report(states: list[dict[str, Any]]) -> None:
        for state in states:
            if state["state"] in (*ENDED, "failed") and (name := name_state(state)) not in printed:
                printed.add(name)
                known = state["scores"].items() if state["state"] == "done" else ()
                line = "  ".join(f"{SCORE_NAMES.get(key, key)} {format_score(key, value)}" for key, value in known)
                ended = sum(name_state(each) in printed for each in states)
                print(clean_text(f"{ended}/{len(states)}  {name}: {line or state['state']}"), file=sys.stderr)

    yield report


@contextlib.contextmanager
def comparison_progress(grid: Any, show: bool = True) -> Iterator[tuple[Any, Any]]:
    """Yield two functions, one for the states of a comparison and one for its messages; they show nothing without `show`."""
    console = create_console(stderr=True)
    if not show:
        yield None, lambda _: None
        return
    if console.is_jupyter:
        with notebook_progress() as shown:
            yield shown
        return
    if not console.is_terminal:
        with grid_progress(grid) as report:
            yield report, lambda text: print(clean_text(text), file=sys.stderr)
        return
    last = grid.read_states()
    with Live(make_progress_table(last), console=console, transient=True, auto_refresh=False) as live:

        def report(states: list[dict[str, Any]]) -> None:
            last[:] = states
            live.update(make_progress_table(states), refresh=True)

        yield report, lambda text: live.update(make_progress_table(last, text), refresh=True)


@contextlib.contextmanager
def notebook_progress() -> Iterator[tuple[Any, Any]]:
    """`comparison_progress` in a notebook: one line below the cell, which is removed at the end.

    Rich needs ipywidgets there; IPython's own display does not.
    """
    from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

    handle = display(HTML("<pre>starting</pre>"), display_id=True)

    def announce(text: str) -> None:
        handle.update(HTML(f"<pre>{escape(text)}</pre>"))

    def report(states: list[dict[str, Any]]) -> None:
        done = sum(state["state"] in ENDED for state in states)
        busy = [f"{name_state(s)}: {s['state']}" for s in states if s["state"] not in (*ENDED, "waiting")]
        announce("  ·  ".join([f"{done} of {len(states)} runs done", *busy[:1]]))

    try:
        yield report, announce
    finally:
        handle.update(HTML(""))


@contextlib.contextmanager
def row_progress(total: int | None, show: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Yield a function of the rows done since its last call, which moves a bar on a terminal; None elsewhere."""
    console = create_console(stderr=True)
    if not show or not console.is_terminal or console.is_jupyter:
        yield None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("evaluating", total=total)
        yield lambda rows: progress.advance(task, rows)


def name_state(state: dict[str, Any]) -> str:
    """What a line calls a run: its method and its seed, or, of a trial, its number.

    >>> name_state({"method": "mimo", "seed": 1}), name_state({"method": "tuning mimo", "seed": 3, "run": "trial 2"})
    ('mimo, seed 1', 'tuning mimo, trial 2')
    """
    run = state.get("run") or f"seed {state['seed']}"
    return f"{state['method']}, {run}"
