"""Data sets by name or by path: `load("digits")`, `load("photos/")`, `load("houses.csv", target="price")`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataError
from ..core.suggestions import describe_unknown
from . import arrays, table
from . import folder as image_folder
from .catalog import SETS
from .columns import Columns
from .dataset import Data, Part, checked
from .preparation import Pixels, Preparation

__all__ = ["Columns", "Data", "Part", "Pixels", "Preparation", "folder_of", "load"]


def load(name: str, folder: str | os.PathLike[str] | None = None, **options: Any) -> Data:
    """A known set, or the image folder, table (.csv, .tsv, .parquet) or archive (.npz) at a path.

    Known sets are looked for in the data `folder`, see `folder_of`. A known name wins over a file that is called so: write
    ./digits for the file.

    >>> data = load("digits")
    >>> len(data.train), len(data.test), data.shape, data.task
    (1297, 500, (1, 8, 8), 'classification')
    """
    known = SETS.get(name)
    if known:
        _check_options(name, options, known.options)
        return checked(known.opener(known, folder_of(folder), **options))
    opener, takes = _by_path(name)
    _check_options(name, options, takes)
    return checked(opener(Path(name).expanduser(), **options))


def folder_of(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where data lie: the folder given, else the one in PLURIBUS_DATA, else ~/.cache/pluribus/data."""
    place = Path(folder or os.environ.get("PLURIBUS_DATA") or Path("~/.cache/pluribus/data")).expanduser()
    if place.is_file():
        raise DataError(f"{place} is a file: name a folder for the data with --data-dir or PLURIBUS_DATA")
    return place


def _by_path(name: str) -> tuple[Callable[..., Data], Mapping[str, str]]:
    """What reads the file or folder, and the options that it takes."""
    path = Path(name).expanduser()
    kinds = (*table.SUFFIXES, ".npz")
    if name and path.is_dir():
        return image_folder.read, image_folder.OPTIONS
    if path.is_file() and path.name.lower().endswith(table.SUFFIXES):
        return table.read, table.OPTIONS
    if path.is_file() and path.suffix == ".npz":
        return arrays.read, arrays.OPTIONS
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
