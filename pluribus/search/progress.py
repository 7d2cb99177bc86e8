"""The progress of a search: one bar on a terminal, and a line for every epoch in a log."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..core.terminal import clean_text, create_console
from .found_cell import SearchEpoch

ReportStep = Callable[[int, SearchEpoch | None], None]
"""Gets the number of steps that are done, and after an epoch its row."""


def format_epoch(row: SearchEpoch, epochs: int) -> str:
    """Return an epoch as one line."""
    heat = "" if row.temperature is None else f"  τ {row.temperature:.2f}"
    return (
        f"epoch {row.epoch}/{epochs}  loss {row.loss:.3f}  acc {100 * row.accuracy:.1f}%  val {row.validation_loss:.3f}  "
        f"{100 * row.validation_accuracy:.1f}%{heat}"
    )


@contextlib.contextmanager
def search_progress(epochs: int, steps: int, done: int, show: bool = True) -> Iterator[ReportStep]:
    """Yield a function that shows progress, for a search of `epochs` with `steps` each, of which `done` epochs are done."""
    console = create_console(stderr=True)
    if not show or not console.is_terminal:
        began = time.monotonic()

        def print_line(step: int, row: SearchEpoch | None) -> None:
            if show and row is not None:
                line = f"{format_epoch(row, epochs)}  {time.monotonic() - began:.0f} s  {row.cell}"
                print(clean_text(line), file=sys.stderr, flush=True)

        yield print_line
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(None), TimeRemainingColumn())
    with Progress(*columns, console=console, expand=True) as bar:
        task = bar.add_task(f"epoch {done + 1}/{epochs}", total=epochs * steps, completed=done * steps)

        def draw(step: int, row: SearchEpoch | None) -> None:
            bar.update(task, completed=step)
            if row is not None:
                bar.update(task, description=format_epoch(row, epochs))

        yield draw
