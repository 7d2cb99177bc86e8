"""The log of an error that nobody foresaw: its traceback, the command line and the versions."""

import contextlib
import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from importlib import metadata
from pathlib import Path

KEPT = 20
"""So many logs are kept in the folder."""


def write_log(error: BaseException) -> Path | None:
    """Write the log of an error, and return its path, or None if no folder can be written to.

    The folder is $PLURIBUS_LOGS, or ~/.cache/pluribus/logs, or that of temporary files.
    """
    text = f"{shlex.join(['pluribus', *sys.argv[1:]])}\n\n{describe_versions()}\n\n{''.join(traceback.format_exception(error))}"
    name = f"pluribus-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    for folder in list_folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / name
            place.write_text(text, encoding="utf-8", errors="backslashreplace")
            delete_old_logs(folder)
            return place
    return None


def list_folders() -> list[Path]:
    """The folders that a log may go to, best first."""
    named = os.environ.get("PLURIBUS_LOGS")
    folders = [Path(named)] if named else []
    with contextlib.suppress(RuntimeError):  # there is no home
        folders += [] if named else [Path.home() / ".cache" / "pluribus" / "logs"]
    return [*folders, Path(tempfile.gettempdir())]


def delete_old_logs(folder: Path) -> None:
    logs = sorted(folder.glob("pluribus-*.log"), key=lambda path: path.stat().st_mtime)
    for old in logs[:-KEPT]:
        old.unlink(missing_ok=True)


def describe_versions() -> str:
    """One line for Python and each package that matters."""
    lines = [f"python {platform.python_version()}, {platform.system()} {platform.machine()}"]
    for name in ("pluribus", "torch", "lightning", "numpy", "pydantic", "safetensors", "rich", "typer"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            lines.append(f"{name} {metadata.version(name)}")
    return "\n".join(lines)


def describe_unexpected(error: BaseException) -> str:
    """One sentence about an error: its kind, and where it was raised if that is in the user's own code."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    own = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if own in file.parents:
            break
        if "site-packages" not in file.parts and file.is_file() and not is_standard(file):
            return f"{frame.name}, line {frame.lineno} of {file}, raised {what}"
    return what


def is_standard(file: Path) -> bool:
    """Whether a file is of Python's own library."""
    return Path(os.__file__).parent in file.parents
