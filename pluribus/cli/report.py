"""`pluribus report`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from .app import app


@app.command(epilog="[bold]Examples[/]\n\npluribus report runs/compare-digits-…\n\npluribus report results.json --out shared/")
def report(
    results: Annotated[
        Path, typer.Argument(metavar="FOLDER|results.json", help="a comparison, or its results", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="the folder to write to \\[that of the results]")
    ] = None,
) -> None:
    """Write page, figure and tables again from the results of a comparison."""
    from ..core.errors import FileError
    from ..reports import write_report

    file = results / "results.json" if results.is_dir() else results
    if not file.is_file():
        raise FileError(f"there is no file {file}: name the folder of a finished comparison, or its results.json")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != 1 or not content["methods"]:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{file} does not hold the results of a comparison") from error
    folder = out or file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}") from error
    typer.echo(f"The page: {write_report(content, folder)}")
