"""The command line in a shell and on a terminal: completion, the version, the progress bar."""

import fcntl
import os
import pty
import re
import runpy
import select
import struct
import sys
import termios
import time

import pytest

from pluribus import __version__
from pluribus.core.spec import Spec

from ..processes import fork_pluribus


def test_the_module_says_its_version(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pluribus", "--version"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as end:
        runpy.run_module("pluribus", run_name="__main__")
    assert (end.value.code, *capsys.readouterr()) == (0, f"pluribus {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("pluribus train --method m", [name for name in Spec.registry if name.startswith("m")]),
        ("pluribus train --data fash", ["fashion-mnist"]),
        ("pluribus train --schedule c", ["constant", "cosine"]),
        ("pluribus train --model lenet", ["lenet5"]),
        ("pluribus data get cifar100-", ["cifar100-coarse"]),
        ("pluribus eval", ["evaluate"]),
    ],
)
def test_the_shell_completes_names(words, found, pluribus, monkeypatch):
    monkeypatch.setenv("_PLURIBUS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    answer = pluribus("")
    assert answer.code == 0
    assert answer.out.split() == found


def on_a_terminal(words, folder, columns=80):
    """What a process writes to a terminal of so many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {"COLUMNS": str(columns), "TERM": "xterm"}
    child = fork_pluribus(words.split(), folder, output=follower, environment=environment)
    os.close(follower)
    seen, end = b"", time.monotonic() + 120
    try:
        while time.monotonic() < end:
            if not select.select([leader], [], [], 1)[0]:
                continue
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            seen += piece
    finally:
        os.close(leader)
        if child.is_alive() and time.monotonic() >= end:
            child.kill()
    child.join(30)
    return child.exitcode, seen.decode()


def test_the_bar_shows_the_scores_and_fits_eighty_columns(work):
    code, seen = on_a_terminal("train --data digits --model mlp --epochs 3 --out run", work)
    assert code == 0, seen
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    shown = [line.rstrip() for line in re.split(r"[\r\n]+", plain)]
    bar = [line for line in shown if line.startswith("epoch 3/3")][-1]
    assert re.search(r"loss \d+\.\d+ +acc \d+\.\d+% +NLL \d+\.\d+ +ECE \d+\.\d+% +\d:\d\d:\d\d", bar), bar
    long = [line for line in shown if len(line) > 80]
    assert not long, long


def test_the_command_line_keeps_the_memory_that_it_frees(pluribus, monkeypatch):
    told = []
    monkeypatch.setattr("pluribus.cli.app.keep_freed_memory", lambda: told.append("kept"))
    assert pluribus("methods mimo").code == 0
    assert told == ["kept"]
