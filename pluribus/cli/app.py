"""`pluribus`: the commands, and what a person is told when something is wrong."""

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

app = typer.Typer(
    name="pluribus",
    help="Make one neural network answer like many: train, judge and use efficient ensembles.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pluribus {__version__}")
        raise typer.Exit


@app.callback(epilog="[bold]Begin with[/]  pluribus compare --data digits   ·   pluribus methods   ·   pluribus data list")
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


def main() -> None:
    """The entry point: a person's mistake ends with a sentence and exit code 2, never with a traceback."""
    from . import bench, compare, data, evaluate, methods, report, reproduce, train  # noqa: F401  each adds its commands

    warnings.showwarning = _print_warning
    keep_freed_memory()
    if not os.environ.get("COLUMNS") and not sys.stdout.isatty():
        os.environ["COLUMNS"] = "100"  # help and tables in a pipe or a log
    try:
        try:
            app(prog_name="pluribus")
        finally:
            sys.stdout.flush()  # a full disk is said here, not by the interpreter when nobody listens any more
    except (PluribusError, ImportError) as error:
        fail(str(error))
    except BrokenPipeError:  # whoever read has seen enough
        discard_output()
        raise SystemExit(1) from None
    except OSError as error:
        said = str(error.strerror or error)
        if error.errno == errno.ENOSPC and not error.filename:
            said = f"cannot write to standard output: {said}"
        fail(f"{error.filename}: {said}" if error.filename else said)
    except KeyboardInterrupt:
        fail("stopped", 130)


def fail(message: str, code: int = 2) -> NoReturn:
    if os.environ.get("PLURIBUS_DEBUG") and sys.exc_info()[0] is not None:
        raise
    print(f"pluribus: {' '.join(message.split())}", file=sys.stderr)
    discard_output()
    raise SystemExit(code)


def discard_output() -> None:
    """What standard output does not take goes nowhere: else the interpreter tries again at the end, and complains."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
