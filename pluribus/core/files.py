"""Files that are whole or not there at all.

A file is written under a temporary name, `.NAME.XXXXXXXX.pluribus-tmp`, which its writer holds locked, and then renamed. A
process that is killed leaves that file unlocked: so a later one can tell it from a file that is being written.
"""

import contextlib
import json
import math
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from .errors import FileError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.pluribus-tmp|\.step-\d+\.safetensors\.[a-z0-9_]{8}")
"""The names of temporary files; the second is that of checkpoints of older versions."""
OLD = 3600
"""Seconds after which a temporary file counts as left behind where files cannot be locked."""

NOT_FINITE = "not finite"
"""What stands for a number that is NaN or infinite in tables and texts; JSON has null."""


def write_file(target: Path, data: bytes | str) -> None:
    """All of it, or nothing: a reader never sees half a file."""
    data = data.encode() if isinstance(data, str) else data
    try:
        handle, temporary = _create_temporary(target)
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            if fcntl is not None:  # while it is locked
                os.replace(temporary, target)
        if fcntl is None:  # Windows renames no open file
            os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FileError(f"cannot write {target}: {error.strerror}") from error


def _create_temporary(target: Path) -> tuple[int, str]:
    """Create and lock a temporary file beside the target. Raises OSError."""
    while True:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".pluribus-tmp")
        if fcntl is None:
            return handle, temporary
        with contextlib.suppress(OSError):  # some network drives have no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # `remove_leftovers` of another process was faster than the lock


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder, and no others: not those that are being written."""
    for path in folder.glob(".*"):
        if TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            with contextlib.suppress(OSError):
                _remove_if_unlocked(path)


def _remove_if_unlocked(path: Path) -> None:
    if fcntl is None:
        if time.time() - path.stat().st_mtime > OLD:
            path.unlink()
        return
    handle = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError if its writer holds it
        path.unlink()
    finally:
        os.close(handle)


def format_json(content: Any, indent: int | None = 1) -> str:
    """Strict JSON; what is no number becomes null."""
    content = replace_non_finite(content)
    text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # the name of a file that is not UTF-8 holds surrogates: they are escaped
        return json.dumps(content, indent=indent, allow_nan=False)
    return text


def replace_non_finite(value: Any) -> Any:
    """The same with None for NaN and ∞, which a diverged run leaves and JSON has no word for."""
    if isinstance(value, dict):
        return {str(key): replace_non_finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def restore_number(value: float | None) -> float:
    """A number of a JSON record: NaN for None, by which `replace_non_finite` writes what is not finite."""
    return math.nan if value is None else value


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
