"""The command line called as a person calls it: in this process, for speed, or in one of its own."""

import functools
import os
import shlex
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
import typer

from pluribus.cli import main

from ..shortcuts import shorten_measurements
from .files import rows


@pytest.fixture(scope="package", autouse=True)
def _short_measurements():
    with shorten_measurements():
        yield


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


build_parser = functools.cache(typer.main.get_command)
"""The parser of the command line has hundreds of options: it is built once, and not for each call."""


def call_pluribus(*words):
    """The exit code of `pluribus WORDS…`, with nothing of this process changed for good."""
    with (
        mock.patch.object(sys, "argv", ["pluribus", *words]),
        mock.patch.object(sys, "path", list(sys.path)),
        mock.patch.object(warnings, "showwarning", warnings.showwarning),
        mock.patch.dict(os.environ, {"COLUMNS": "200"}),
        mock.patch("typer.main.get_command", build_parser),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    sys.modules.pop("nets", None)  # the user's own, another one in every test
    return ended.value.code or 0


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty working folder, and no data sets."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PLURIBUS_RUN", raising=False)
    monkeypatch.setenv("PLURIBUS_DATA", "data")
    return folder


@pytest.fixture
def pluribus(work, capfd, monkeypatch):
    """`pluribus("train --epochs 1")` in the working folder, in this process, which starts no others."""
    launcher = "lightning.pytorch.strategies.launchers.subprocess_script._SubprocessScriptLauncher"
    monkeypatch.setattr(f"{launcher}._call_children_scripts", lambda _: pytest.fail("it started processes"))

    def call(line):
        capfd.readouterr()
        code = call_pluribus(*shlex.split(line))
        return Answer(code, *capfd.readouterr())

    return call


@pytest.fixture
def process(work):
    """The same in a process of its own."""

    def call(line, **options):
        words = [sys.executable, "-m", "pluribus", *shlex.split(line)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | options.pop("env", {})
        done = subprocess.run(words, env=environment, text=True, stderr=subprocess.PIPE, timeout=600, check=False, **options)
        return Answer(done.returncode, done.stdout or "", done.stderr)

    return call


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Three trained runs, to be copied: of the digits, of a table with classes, of a regression."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "flowers.csv").write_text(rows())
    (folder / "houses.csv").write_text(rows(target="price"))
    train = ["train", "--quiet", "--epochs", "1", "--batch-size", "32", "--model", "mlp:hidden=[16]"]
    told = {
        "digits": ["digits", "--rows", "64"],
        "flowers": [str(folder / "flowers.csv")],
        "houses": [str(folder / "houses.csv")],
    }
    for name, data in told.items():
        assert call_pluribus(*train, "--data", *data, "--out", str(folder / name)) == 0
    return folder


@pytest.fixture
def a_copy(runs, work):
    """`a_copy("digits")`: a trained run in the working folder, called "run"."""
    return lambda name: Path(shutil.copytree(runs / name, work / "run"))
