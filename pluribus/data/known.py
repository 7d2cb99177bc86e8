"""What is known of a data set before it is read: its files, their published checksums, and where it comes from."""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..core.errors import DataError
from ..core.predictive import Task
from .dataset import Data

GZIP = b"\x1f\x8b"

State = Literal["ready", "test only", "missing", "embedded"]


@dataclass(frozen=True)
class File:
    """One file of a set, named from the data folder; it may lie there gzipped. A `*` in the name stands for anything."""

    path: str
    part: Literal["train", "test"]
    digests: tuple[str, ...] = ()
    """As "md5:…". Of the file as it was published, zipped or not: any one of them will do."""

    def found(self, folder: Path) -> Path | None:
        for name in (self.path, self.path + ".gz"):
            paths = sorted(folder.glob(name)) if "*" in name else [folder / name]
            paths = [path for path in paths if path.is_file()]
            if len(paths) > 1:
                listed = ", ".join(path.name for path in paths)
                raise DataError(f"{folder / self.path} must be one file, found {listed}: keep the one that you mean")
            if paths:
                return paths[0]
        return None

    def exact(self, data: bytes) -> bool:
        """Are these the published bytes?"""
        return any(_digest(kind, data) == digest for kind, _, digest in (d.partition(":") for d in self.digests))

    def right(self, data: bytes) -> bool:
        """Are these the published bytes, or the same compressed in another way?"""
        if self.exact(data):
            return True
        try:
            return data.startswith(GZIP) and self.exact(gzip.decompress(data))
        except (OSError, EOFError, zlib.error):
            return False


def _digest(kind: str, data: bytes) -> str:
    return hashlib.new(kind, data, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Known:
    """One row of the catalog."""

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
    opener: Callable[..., Data]
    """(known, folder, **options) -> Data"""
    forms: tuple[tuple[File, ...], ...] = ()
    """The files, once for each format in which the set was published, the preferred one first; none for an embedded set."""
    homes: tuple[str, ...] = ()
    """Where `fetch` finds the files of the first form: folders, or .tar.gz archives that hold them."""
    packages: tuple[str, ...] = ()
    """Registry packages that hold the same, where no home can be reached."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What `load` takes for this set, and what it means."""

    @property
    def classes(self) -> int:
        return len(self.labels)

    @property
    def gettable(self) -> bool:
        return bool(self.homes or self.packages)

    def present(self, folder: Path) -> State:
        if not self.forms:
            return "embedded"
        try:
            found = self.find(Path(folder))
        except (DataError, OSError):
            return "missing"
        return "ready" if any(file.part == "train" for file in found) else "test only"

    def find(self, folder: Path) -> dict[File, Path]:
        """The files of the first form that is complete, or of which the whole test part is there and nothing else."""
        every = [{file: file.found(folder) for file in form} for form in self.forms]
        for tested in (False, True):
            for form in every:
                wanted = [file for file in form if file.part == "test"] if tested else list(form)
                rest = [file for file in form if file not in wanted]
                if wanted and all(form[file] for file in wanted) and not any(form[file] for file in rest):
                    return {file: path for file, path in form.items() if path}
        nearest = max(every, key=lambda form: sum(path is not None for path in form.values()))
        raise self.missing(folder, next(file for file, path in nearest.items() if path is None))

    def missing(self, folder: Path, file: File) -> DataError:
        if self.gettable:
            cure = f"get it with `pluribus data get {self.name}`"
        else:
            cure = f"put it there by hand (it comes from: {self.source})"
        return DataError(
            f"{self.name} is not complete in {folder}: {file.path} is missing; {cure}, "
            "or say where the data lie with --data-dir or PLURIBUS_DATA"
        )


def contents(path: Path) -> bytes:
    """The bytes of a file, unzipped where they are zipped, whatever the file is called."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged, it cannot be unzipped ({error}): get it again") from error
