"""An entry of the catalog: the files of a data set, their published checksums, and where the set comes from."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..core.errors import DataError
from ..core.predictive import Task
from .dataset import Data
from .unzipping import GZIP, unzip

State = Literal["ready", "test only", "missing", "embedded"]


@dataclass(frozen=True)
class DataFile:
    """One file of a set, named from the data folder; it may be gzipped there. A `*` in the name stands for any text."""

    path: str
    part: Literal["train", "test"]
    digests: tuple[str, ...] = ()
    """Checksums as "md5:…" of the published file, zipped or not; a file that has any one of them is right."""

    def find(self, folder: Path) -> Path | None:
        """Where the file is, or None. Raises: DataError if a `*` fits several files."""
        for name in (self.path, self.path + ".gz"):
            paths = sorted(folder.glob(name)) if "*" in name else [folder / name]
            paths = [path for path in paths if path.is_file()]
            if len(paths) > 1:
                listed = ", ".join(path.name for path in paths)
                raise DataError(f"{folder / self.path} must be one file, found {listed}: keep the one that you mean")
            if paths:
                return paths[0]
        return None

    def is_exact(self, data: bytes) -> bool:
        """Whether these are the published bytes."""
        return any(_compute_digest(kind, data) == digest for kind, _, digest in (d.partition(":") for d in self.digests))

    def is_valid(self, data: bytes) -> bool:
        """Whether these are the published bytes, or the same content compressed differently."""
        if self.is_exact(data):
            return True
        try:
            return data.startswith(GZIP) and self.is_exact(unzip(data, Path(self.path)))
        except DataError:
            return False


def _compute_digest(kind: str, data: bytes) -> str:
    return hashlib.new(kind, data, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class CatalogEntry:
    """A data set that `load` knows by name."""

    name: str
    summary: str
    task: Task
    labels: tuple[str, ...]
    """The names of the classes; none for a regression."""
    shape: tuple[int, ...]
    train: int
    test: int
    source: str
    """Whom to cite, and the licence where there is one."""
    reader: Callable[..., Data]
    """(entry, folder, **options) -> Data"""
    forms: tuple[tuple[DataFile, ...], ...] = ()
    """The files, once for each format in which the set was published, the preferred one first; none for an embedded set."""
    homes: tuple[str, ...] = ()
    """Addresses of the files of the first form: folders, or .tar.gz archives that hold them. They are tried in this order."""
    packages: tuple[str, ...] = ()
    """Registry packages (npm:…, apt:…) that hold the same files, for when no address can be reached."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of `load` for this set, and their meaning."""

    @property
    def classes(self) -> int:
        """The number of classes; 0 for a regression."""
        return len(self.labels)

    @property
    def is_downloadable(self) -> bool:
        """Whether there is any source to download the files from."""
        return bool(self.homes or self.packages)

    def find_state(self, folder: Path) -> State:
        """Whether the files are in the data folder."""
        if not self.forms:
            return "embedded"
        try:
            found = self.find_files(Path(folder))
        except (DataError, OSError):
            return "missing"
        return "ready" if any(file.part == "train" for file in found) else "test only"

    def find_files(self, folder: Path) -> dict[DataFile, Path]:
        """The files of the first form that is complete, or of which all test files and no others are there.

        Raises: DataError if there is no such form; it names a missing file and says how to get it.
        """
        every = [{file: file.find(folder) for file in form} for form in self.forms]
        for test_only in (False, True):
            for form in every:
                wanted = [file for file in form if file.part == "test"] if test_only else list(form)
                rest = [file for file in form if file not in wanted]
                if wanted and all(form[file] for file in wanted) and not any(form[file] for file in rest):
                    return {file: path for file, path in form.items() if path}
        nearest = max(every, key=lambda form: sum(path is not None for path in form.values()))
        missing = next(file for file, path in nearest.items() if path is None)
        if self.is_downloadable:
            cure = f"get it with `pluribus data get {self.name}`"
        else:
            cure = f"put it there by hand (it comes from: {self.source})"
        raise DataError(
            f"{self.name} is not complete in {folder}: {missing.path} is missing; {cure}, "
            "or name the folder that holds the data with --data-dir or PLURIBUS_DATA"
        )
