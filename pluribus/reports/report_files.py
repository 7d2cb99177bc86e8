"""The files of a report."""

import tempfile
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.files import write_file
from ..file_formats.reading import write_json
from .csv_and_markdown import format_csv, format_markdown
from .page import render_page
from .summary_figure import write_summary_figure


def write_report(results: dict[str, Any], folder: Path, *, with_results: bool = True) -> Path:
    """Write results.json, results.csv, results.md, picture.svg and report.html into a folder; return the path of the page.

    The JSON is written first: if a later step fails, the other files can be made from it with `pluribus report`. Without
    `with_results` it is left as it is.

    Raises:
        FileError: the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}") from error
    if with_results:
        write_json(folder / "results.json", results)
    write_file(folder / "results.csv", format_csv(results))
    write_file(folder / "results.md", format_markdown(results))
    with tempfile.TemporaryDirectory() as place:
        drawn = Path(place) / "picture.svg"
        write_summary_figure(results, drawn)
        write_file(folder / "picture.svg", drawn.read_bytes())
    write_file(folder / "report.html", render_page(results))
    return folder / "report.html"
