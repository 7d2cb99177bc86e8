"""The `pluribus` command: its entry point, and how errors are reported."""

import errno
import os
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
from .import_path import hide_working_folder

app = typer.Typer(
    name="pluribus",
    help="Make one neural network answer like many: train, evaluate and use efficient ensembles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    """Run the command line. A user's mistake ends with one sentence and exit code 2, never with a traceback."""
    # Each of these modules adds its command to `app`.
    from . import bench, compare, data, evaluate, methods, models, predict, report, reproduce, train  # noqa: F401

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
    except (PluribusError, ImportError) as error:
        fail(str(error))
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        discard_output()
        raise SystemExit(1) from None
    except OSError as error:
        reason = str(error.strerror or error)
        if error.errno == errno.ENOSPC and not error.filename:
            reason = f"cannot write to standard output: {reason}"
        fail(f"{error.filename}: {reason}" if error.filename else reason)
    except KeyboardInterrupt:
        fail("stopped", 130)


def fail(message: str, code: int = 2) -> NoReturn:
    """Print one line on standard error and exit. With PLURIBUS_DEBUG set, raise the current error instead."""
    if os.environ.get("PLURIBUS_DEBUG") and sys.exc_info()[0] is not None:
        raise
    print(f"pluribus: {' '.join(message.split())}", file=sys.stderr)
    discard_output()
    raise SystemExit(code)


def discard_output() -> None:
    """Redirect standard output to nowhere if it cannot be written, as the interpreter would try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
