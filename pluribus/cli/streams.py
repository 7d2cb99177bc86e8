"""Standard output and standard error, which may be closed, a pipe whose reader is gone, or unable to show every letter."""

import io
import json
import os
import sys
from typing import Any

from ..core.files import format_json, replace_non_finite


def prepare_streams() -> None:
    """Make standard output and standard error writable, whatever they are.

    A stream that is closed leads nowhere: otherwise the first file that is opened would become standard output. A letter that
    the encoding lacks is shown as a question mark.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:  # the lowest free descriptor is this one
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def discard_output() -> None:
    """Redirect standard output to nowhere if it cannot be written, as the interpreter would try again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except ValueError:  # it is closed
            continue


def print_json(content: Any) -> None:
    """Print one line of JSON. Letters that standard output cannot show are escaped, so that nothing is lost."""
    import typer

    text = format_json(content, indent=None)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(replace_non_finite(content), allow_nan=False)
    typer.echo(text)
