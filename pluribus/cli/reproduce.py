"""`pluribus reproduce`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..core.terminal import create_console
from .app import app, fail

EPILOG = """[bold]Examples[/]

pluribus reproduce --list

pluribus reproduce variance/table-1 --scale cpu --workers 2

pluribus reproduce variance/ALL --scale smoke"""


@app.command(epilog=EPILOG)
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAPER/ARTEFACT", help="the recipes to run; PAPER/ALL names all of a paper", show_default=False),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="smoke|cpu|paper",
            help="seconds on embedded data, a smaller setting on real data, or the published one \\[smoke]",
            show_default=False,
        ),
    ] = "smoke",
    listed: Annotated[bool, typer.Option("--list", "-l", help="show every recipe and its recorded verdicts")] = False,
    page: Annotated[
        bool, typer.Option("--page", help="write results, figures and pages again from earlier measurements")
    ] = False,
    workers: Annotated[
        str,
        typer.Option(
            "--workers",
            "-w",
            metavar="N|dask://…|ray",
            help="processes, or a cluster, for cells that do not need one another \\[1]",
            show_default=False,
        ),
    ] = "1",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="where results and pages go \\[papers]", show_default=False)
    ] = Path("papers"),
    work: Annotated[
        Path,
        typer.Option(
            "--work", metavar="FOLDER", help="where trainings go, to go on from \\[runs/reproduce]", show_default=False
        ),
    ] = Path("runs/reproduce"),
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="FOLDER", help="where the data lie \\[PLURIBUS_DATA]", show_default=False),
    ] = None,
) -> None:
    """Reproduce tables and figures of the papers: our numbers beside theirs, with a verdict on every claim.

    A finished cell is never measured twice; a run that was stopped continues where it was.
    """
    from rich.progress import BarColumn, Progress, TextColumn

    from ..papers import SCALES, select_recipes
    from ..papers.reproduction import Reproduction, find_obstacle, reproduce
    from . import show_reproduce

    if scale not in SCALES:
        fail(f"--scale must be one of {', '.join(SCALES)}, got {scale!r}")
    if listed:
        return show_reproduce.print_recipes(out, names or ["ALL"])
    if not names:
        fail("name what to run, as in variance/table-1 or variance/ALL; `pluribus reproduce --list` shows everything")
    jobs = [Reproduction(recipe, scale, out, work, data_dir) for recipe in select_recipes(names)]
    if page:
        jobs = [job for job in jobs if job.read_cells()]
        if not jobs:
            fail(f"there is nothing at scale {scale} in {out}: leave --page out to measure it")
        for job in jobs:
            show_reproduce.print_result(show_reproduce.rewrite_results(job), out)
        return None
    console = create_console(stderr=True)
    bar = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), TextColumn("{task.completed}/{task.total}"))
    columns = (*bar, TextColumn("{task.fields[messages]}", style="dim", markup=False))
    for job in jobs:
        obstacle = find_obstacle(job) if len(jobs) > 1 else None
        if obstacle is not None:  # asked for alone, it is an error
            console.print(f"{job.title}: skipped: {obstacle}", markup=False, highlight=False)
            continue
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task, before = progress.add_task(job.title, total=len(job.cells), messages=""), list[str]()

            def report(done: int, total: int, messages: list[str], job: Reproduction = job, task: int = task) -> None:
                nonlocal before
                progress.update(task, completed=done, total=total, messages="; ".join(messages))  # type: ignore[arg-type]
                if not console.is_terminal:
                    for text in messages:
                        if text not in before:
                            print(f"{job.title}: {text}", file=sys.stderr, flush=True)
                before = messages

            found = reproduce(job, workers, report)
        show_reproduce.print_result(found, out)
    return None
