"""Data sets in memory, by name or by path: `load("digits")`, `load("photos/")`, `load("houses.csv", target="price")`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from ..core.suggestions import describe_unknown
from . import image_folder, npz, table, table_files
from .catalog import SETS
from .column_encoding import Columns
from .corruptions import corrupt
from .dataset import Data, Part, check_data
from .download import check_files, download_files
from .preparation import Pixels, Preparation

__all__ = [
    "SETS",
    "Columns",
    "Data",
    "Part",
    "Pixels",
    "Preparation",
    "check_files",
    "corrupt",
    "download_files",
    "find_data_folder",
    "load",
]


def load(name: str, folder: str | os.PathLike[str] | None = None, **options: Any) -> Data:
    """Load a known data set by name, or the image folder, table (.csv, .tsv, .parquet) or archive (.npz) at a path.

    A known name wins over a file of the same name: write ./digits for the file.

    Args: the name or path; the data `folder` that holds the files of known sets, see `find_data_folder`; the options of this
    set or format (`SETS[name].options`, or `OPTIONS` of `table`, `image_folder` and `npz`).
    Returns: the data in memory, checked. Raises: DataError if there is no such set, file or option, or it cannot be read.

    >>> data = load("digits")
    >>> len(data.train), len(data.test), data.shape, data.task
    (1297, 500, (1, 8, 8), 'classification')
    """
    if name != name.encode(errors="replace").decode():
        raise DataError(f"the name of data must be text in UTF-8, got {os.fsencode(name)!r}: rename the file or folder")
    entry = SETS.get(name)
    if entry:
        _check_options(name, options, entry.options)
        return check_data(entry.reader(entry, find_data_folder(folder), **options))
    read, takes = _find_reader(name)
    _check_options(name, options, takes)
    return check_data(read(Path(name).expanduser(), **options))


def find_data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder that holds the data: this one, else that in PLURIBUS_DATA, else ~/.cache/pluribus/data.

    Raises: DataError if it is a file.
    """
    place = Path(folder or os.environ.get("PLURIBUS_DATA") or Path("~/.cache/pluribus/data")).expanduser()
    if place.is_file():
        raise DataError(f"{place} is a file: name a folder for the data with --data-dir or PLURIBUS_DATA")
    return place


def _find_reader(name: str) -> tuple[Callable[..., Data], Mapping[str, str]]:
    """The function that reads this file or folder, and its options."""
    path = Path(name).expanduser()
    kinds = (*table_files.SUFFIXES, ".npz")
    if name and path.is_dir():
        return image_folder.read, image_folder.OPTIONS
    if path.is_file() and path.name.lower().endswith(table_files.SUFFIXES):
        return table.read, table.OPTIONS
    if path.is_file() and path.suffix == ".npz":
        return npz.read, npz.OPTIONS
    if path.is_file():
        raise DataError(f"cannot tell what {name} is: a file must end in {', '.join(kinds)}; images go into a folder a class")
    if os.sep in name or "/" in name or name.startswith(("~", ".")) or path.suffix:
        raise DataError(f"there is no file or folder {name}")
    said = describe_unknown("data set", name, SETS)
    raise DataError(said if said.endswith("?") else f"{said}; or give the path of a folder of images, a table or an .npz file")


def _check_options(name: str, options: Mapping[str, Any], known: Mapping[str, str]) -> None:
    for option in options:
        if option not in known:
            choice = f"its options are {', '.join(known)}" if known else "it has none"
            raise DataError(f"{name} has no option {option!r}: {choice}")
