"""Files that are whole or not there at all."""

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from .errors import FileError

NOT_FINITE = "not finite"
"""What stands for a number that is NaN or infinite in tables and texts; JSON has null."""


def write_file(target: Path, data: bytes | str) -> None:
    """All of it, or nothing: a reader never sees half a file."""
    data = data.encode() if isinstance(data, str) else data
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"cannot write {target}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise FileError(f"cannot write {target}: {error.strerror}") from error


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
