"""All that a comparison leaves in its folder."""

import tempfile
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.files import format_json, write_file
from .page import page
from .picture import picture
from .tables import csv_text, markdown


def write_all(results: dict[str, Any], folder: Path) -> Path:
    """results.json, results.csv, results.md, picture.svg and report.html; answers where the page is.

    The JSON comes first: if anything after it fails, the results are there, and the rest can be made from them.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {folder}: {error.strerror}") from error
    write_file(folder / "results.json", format_json(results) + "\n")
    write_file(folder / "results.csv", csv_text(results))
    write_file(folder / "results.md", markdown(results))
    with tempfile.TemporaryDirectory() as place:
        drawn = Path(place) / "picture.svg"
        picture(results, drawn)
        write_file(folder / "picture.svg", drawn.read_bytes())
    write_file(folder / "report.html", page(results))
    return folder / "report.html"
