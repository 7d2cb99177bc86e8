"""`pluribus report`."""

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
    from ..file_formats.comparison_files import Results
    from ..file_formats.reading import read_json
    from ..reports import write_report

    file = results / "results.json" if results.is_dir() else results
    if not file.is_file():
        raise FileError(f"there is no file {file}: name the folder of a finished comparison, or its results.json")
    content = read_json(file, Results)
    folder = out or file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}") from error
    is_own = (folder / "results.json").resolve() == file.resolve()  # what is read is not written
    typer.echo(f"The page: {write_report(content, folder, with_results=not is_own)}")
