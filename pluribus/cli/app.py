"""The `pluribus` command: its entry point, and how errors are reported."""

import contextlib
import errno
import os
import re
import sys
import warnings
from typing import Annotated, Any, NoReturn

try:
    import typer
except ImportError:
    sys.exit("the command line needs typer and rich: pip install pluribus")

from .. import __version__
from ..core.allocator import keep_freed_memory
from ..core.errors import PluribusError
from ..core.terminal import clean_text
from .error_log import describe_unexpected, write_log
from .import_path import hide_working_folder
from .streams import discard_output, prepare_streams

app = typer.Typer(
    name="pluribus",
    help="Make one neural network answer like many: train, evaluate and use efficient ensembles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

LONGEST_MESSAGE = 1200
"""Letters of a message; what is cut is its middle, as the end says what to do."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pluribus {__version__}")
        raise typer.Exit


@app.callback(epilog="[bold]Begin with[/]  pluribus compare --data digits   ·   pluribus methods   ·   pluribus data list")
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. No error ends with a traceback.

    A user's mistake or a damaged file is exit code 2 and one sentence. An error that nobody foresaw is exit code 1, and the
    sentence names a log that has the traceback.
    """
    prepare_streams()
    # Each of these modules adds its command to `app`.
    from . import (  # noqa: F401  # noqa: F401
        bench,
        bench_tables,
        calibrate,
        compare,
        data,
        evaluate,
        export,
        methods,
        models,
        predict,
        report,
        reproduce,
        serve,
        train,
    )

    warnings.showwarning = _print_warning
    keep_freed_memory()
    hide_working_folder()
    if not os.environ.get("COLUMNS") and not sys.stdout.isatty():
        os.environ["COLUMNS"] = "100"  # help and tables in a pipe or a log
    try:
        try:
            app(prog_name="pluribus")
        finally:
            sys.stdout.flush()  # a full disk raises its error here, where it is reported, and not when the interpreter ends
    except KeyboardInterrupt:
        fail("stopped", 130)
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        discard_output()
        raise SystemExit(1) from None
    except SystemExit:
        raise
    except BaseException as error:  # a user's own network may raise anything
        fail(*explain_error(error))


def explain_error(error: BaseException) -> tuple[str, int]:
    """The sentence and the exit code for an error that reached the boundary."""
    if isinstance(error, PluribusError | ImportError):
        return str(error), 2
    if isinstance(error, OSError):
        reason = str(error.strerror or error)
        if error.errno == errno.ENOSPC and not error.filename:
            reason = f"cannot write to standard output: {reason}"
        return f"{error.filename}: {reason}" if error.filename else reason, 2
    if is_out_of_memory(error):
        return "there is not enough memory: use smaller batches, fewer members or rows, or a smaller network", 2
    place = write_log(error)
    log = f"the log is {place}" if place else "set PLURIBUS_LOGS to a folder that can be written to, for a log"
    return f"an unexpected error, {describe_unexpected(error)}; {log}", 1


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory could not be allocated; torch raises a RuntimeError for it."""
    words = ("not enough memory", "can't allocate memory", "out of memory", "Unable to allocate")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def fail(message: str, code: int = 2) -> NoReturn:
    """Print one line on standard error and exit. With PLURIBUS_DEBUG set, raise the current error instead."""
    if os.environ.get("PLURIBUS_DEBUG") and sys.exc_info()[0] is not None:
        raise
    with contextlib.suppress(OSError, ValueError):  # standard error is closed
        print(f"pluribus: {clean_text(shorten_message(message))}", file=sys.stderr)
    discard_output()
    raise SystemExit(code)


def shorten_message(message: str) -> str:
    """A message on one line: words of hundreds of letters are cut (paths stay whole), and the middle of a very long message.

    >>> shorten_message("got  " + 5000 * "9")[-4:]
    '999…'
    >>> len(shorten_message("must be a name, got " + 5000 * "9, " + ": write a name")) < LONGEST_MESSAGE
    True
    """
    line = re.sub(r"[^\s/]{300,}", lambda word: word[0][:80] + "…", " ".join(message.split()))
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE // 2]} … {line[-LONGEST_MESSAGE // 4 :]}"


def _print_warning(message: Any, *_: Any, **__: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(f"warning: {clean_text(str(message))}", file=sys.stderr)
