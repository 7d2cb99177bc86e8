"""A command of the command line, run in this process under limits of time and memory, and what it answered."""

import contextlib
import io
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

import pluribus.cli.compare
import pluribus.comparison.api
import pluribus.reports
import pluribus.runs.training  # noqa: F401  (all of these are imported before the clock runs)
from pluribus.cli import main

from ..cli.conftest import build_parser

SECONDS = 20
"""How long the processor may work on a command: each needs less than a second."""
PATIENCE = 15
"""How many times longer a command may take on a busy machine, or when it waits for something."""
MEMORY = 3 * 2**30
"""How much address space a command may add."""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


class TookTooLong(BaseException):
    """Not an Exception, so that the command cannot catch it."""


def call_command(words: Sequence[str], seconds: float = SECONDS) -> Answer:
    """Run `pluribus WORDS…`. An error that escapes is answered as exit code 1 with its traceback."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.object(sys, "argv", ["pluribus", *words]),
        mock.patch.object(sys, "path", list(sys.path)),
        mock.patch.object(warnings, "showwarning", warnings.showwarning),
        mock.patch("typer.main.get_command", build_parser),
        mock.patch.dict(os.environ, {"COLUMNS": "200", "PLURIBUS_LOGS": tempfile.gettempdir()}),
        warnings.catch_warnings(),
        torch.random.fork_rng(devices=[]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("default")
        code, more = call_within_limits(main, seconds)
    os.environ.pop("PLURIBUS_RUN", None)
    printed = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]
    return Answer(code, printed[0], printed[1] + more + read_logs(printed[1]))


def call_within_limits(function, seconds: float) -> tuple[int, str]:
    """Call a function that may end with SystemExit, and return the exit code, and the traceback of an error that escaped."""
    try:
        with limit_time(seconds), limit_memory():
            function()
    except SystemExit as ended:
        return (ended.code or 0) if isinstance(ended.code, int | None) else 1, ""
    except TookTooLong:
        return 1, f"\nstill running after {seconds} seconds:\n{traceback.format_exc(limit=-6)}"
    except BaseException:
        return 1, "\n" + traceback.format_exc()
    return 0, ""


def read_logs(text: str) -> str:
    """The logs that a message names."""
    found = [Path(name) for name in re.findall(r"\S*/\S+\.log\b", text)]
    return "\n".join(path.read_text(errors="replace") for path in found if path.is_file())


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise TookTooLong where the main thread is after so many seconds of work, or `PATIENCE` times as many of waiting."""

    def stop(*_):
        raise TookTooLong

    clocks = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE * seconds))
    before = [signal.signal(number, stop) for number, _, _ in clocks]
    for _, clock, limit in clocks:
        signal.setitimer(clock, limit)
    try:
        yield
    finally:
        for (number, clock, _), handler in zip(clocks, before, strict=True):
            signal.setitimer(clock, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def limit_memory() -> Iterator[None]:
    """Let this process map `MEMORY` bytes more than it has; beyond that allocations fail."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check_manners(answer: Answer, may_report: bool = False) -> str:
    """What is wrong with how a command ended, or "": it must answer (0), or refuse with one sentence (2).

    Warnings may come before the sentence and, of a command that may report its progress, other lines.
    """
    lines = answer.err.splitlines()
    said = [line for line in lines if line.startswith("pluribus: ")]
    strange = [line for line in lines if not line.startswith(("pluribus: ", "warning: "))]
    if answer.code not in (0, 2) or "Traceback" in answer.err:
        return f"exit code {answer.code}:\n{answer.err[-3000:]}"
    if "there is not enough memory" in answer.err:
        return f"it asked for more than {MEMORY // 2**30} GiB"
    if strange and not may_report:
        return f"exit code {answer.code} with other lines than a sentence:\n{answer.err[-3000:]}"
    if answer.code == 2 and (len(said) != 1 or not lines[-1].startswith("pluribus: ")):
        return f"a refusal must end with one sentence, got:\n{answer.err[-3000:]}"
    if answer.code == 2 and len(said[0]) > 2000:
        return f"a sentence of {len(said[0])} characters: {said[0][:200]}…"
    if answer.code == 0 and said:
        return f"it answered and refused:\n{answer.err[-3000:]}"
    return ""
