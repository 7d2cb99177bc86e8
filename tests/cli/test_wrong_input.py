"""Wrong invocations and files: each ends with exit code 2 and one sentence that names the thing and the cure.

Nothing that was there changes, nothing is left behind, and no payload runs. The table is in wrong_settings, wrong_files,
wrong_evaluate, wrong_bench and wrong_reproduce.
"""

import errno
import hashlib
import importlib.util
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from ..processes import fork_pluribus
from .cases import TRAIN
from .conftest import Answer
from .files import UNFINISHED, file, photos, png, rows
from .wrong_bench import BENCH
from .wrong_evaluate import JUDGING
from .wrong_files import DATA, NETWORKS, RUNS
from .wrong_records import RECORDS, SIZES, UNTRAINABLE
from .wrong_reproduce import PAPERS
from .wrong_settings import COMMANDS, PLACES, SETTINGS

EVERY = [*COMMANDS, *SETTINGS, *PLACES, *DATA, *NETWORKS, *RUNS, *JUDGING, *BENCH, *PAPERS, *RECORDS, *SIZES, *UNTRAINABLE]


def digest(folder):
    """Everything in a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


def check(answer, said):
    """One sentence, ours or click's in its box."""
    assert answer.code == 2, answer
    assert "Traceback" not in answer.err
    if "─ Error ─" not in answer.err:
        assert answer.err.startswith("pluribus: ")
        assert answer.err.count("\n") == 1, answer.err
    plain = " ".join(answer.err.replace("│", " ").split())
    for piece in said.split("|"):
        assert piece in plain


def test_the_table_is_long_and_every_row_has_its_name():
    names = [case.name for case in EVERY]
    assert len(names) == len(set(names)) >= 150


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name.replace(" ", "-"))
def test_one_sentence_and_everything_as_it_was(case, pluribus, a_copy, work):
    if case.run:
        a_copy(case.run)
    for make in case.has:
        make(work)
    before = digest(work)
    check(pluribus(case.line), case.said)
    assert not (work / "sprung").exists()  # what a payload would make
    after = digest(work)
    made = {name for name in after if case.leaves and name.split("/")[0] == case.leaves}
    assert {name: value for name, value in after.items() if name not in made} == before


def test_a_process_of_its_own_says_the_same_and_takes_no_module_from_the_working_folder(process, work):
    for name in ("typer", "rich", "yaml", "PIL", "pandas"):
        file(f"{name}.py", "open('sprung', 'w').close()\nraise SystemExit('sprung')")(work)
    photos(file("photos/dog/9.png", "no"))(work)
    before = digest(work)
    check(process("data check photos"), "photos/dog/9.png cannot be read as an image")
    assert digest(work) == before


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_a_cluster_library_that_is_missing_is_said_before_anything_is_written(pluribus, work):
    check(pluribus(f"{TRAIN} --seeds 2 --workers ray"), "--workers ray needs ray: pip install")
    assert digest(work) == {}


# --- the disk ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def full(monkeypatch):
    """`full("name")`: there is no room for files whose names begin so; all others are written."""

    def at(name):
        from pluribus.core import files

        sync = os.fsync

        def fsync(handle):
            if Path(os.readlink(f"/proc/self/fd/{handle}")).name.startswith(f".{name}"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync(handle)

        monkeypatch.setattr(files.os, "fsync", fsync)

    return at


@pytest.mark.parametrize(
    "name", ["config.yaml", "metrics.csv", "step-00000001.safetensors", "weights.safetensors", "result.json"]
)
def test_a_full_disk_names_the_file_and_leaves_no_half_of_it(name, full, pluribus, work):
    file("mine.txt", "mine")(work)
    before = digest(work)
    full(name)
    path = f"run/checkpoints/{name}" if name.startswith("step") else f"run/{name}"
    check(pluribus(f"{TRAIN} --out run"), f"cannot write {path}: No space left on device")
    after = digest(work)
    assert path not in after
    assert not any(Path(name).name.startswith(".") for name in after if not name.endswith("/.lock"))
    assert {name: value for name, value in after.items() if name.split("/")[0] != "run"} == before


def test_a_full_disk_leaves_the_last_evaluation(full, pluribus, a_copy, work):
    a_copy("digits")
    assert pluribus("evaluate run").code == 0
    before = digest(work)
    full("evaluation.json")
    check(pluribus("evaluate run"), "cannot write run/evaluation.json: No space left on device")
    assert digest(work) == before


def test_a_full_disk_while_resuming_leaves_what_can_be_resumed(full, pluribus, a_copy, work):
    UNFINISHED(a_copy("digits").parent)
    before = digest(work)
    full("weights.safetensors")
    check(pluribus("train --resume run --quiet"), "cannot write run/weights.safetensors: No space left on device")
    assert {name: value for name, value in digest(work).items() if name in before} == before


def test_a_limit_of_the_system_is_met_as_a_full_disk_is(work, tmp_path):
    """In a forked process: a limit cannot be lifted again."""

    def limit_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    with open(tmp_path / "printed", "w") as file:
        child = fork_pluribus(f"{TRAIN} --out run".split(), work, output=file.fileno(), prepare=limit_files)
        child.join(120)
    answer = Answer(child.exitcode, "", (tmp_path / "printed").read_text())
    check(answer, "cannot write run/checkpoints/step-|File too large")
    assert not any(name.startswith("run/checkpoints/") for name in digest(work))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_said(a_copy, work, tmp_path):
    a_copy("digits")
    png("a.png")(work)
    printed = tmp_path / "printed"
    with printed.open("w") as file, open("/dev/full", "w") as full:
        words = ["predict", "run", "a.png", "--json"]
        child = fork_pluribus(words, work, output=file.fileno(), prepare=lambda: setattr(sys, "stdout", full))
        child.join(300)
    check(Answer(child.exitcode, "", printed.read_text()), "cannot write to standard output: No space left on device")


@pytest.mark.parametrize("line", [f"{TRAIN} --out mine/run", f"{TRAIN} --out mine/run --seeds 2"])
def test_a_folder_that_is_read_only_is_said(line, pluribus, work, monkeypatch):
    (work / "mine").mkdir()
    make = os.mkdir

    def mkdir(path, *rest, **options):  # permissions do not bind root
        if "mine" in Path(path).parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        make(path, *rest, **options)

    monkeypatch.setattr(os, "mkdir", mkdir)
    check(pluribus(line), "cannot make the folder mine/run: Permission denied; name another with --out")
    assert digest(work) == {"mine": "a folder"}


def test_a_table_that_may_not_be_read_is_said(pluribus, work, monkeypatch):
    file("a.csv", rows())(work)

    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("pandas.read_csv", refuse)
    check(pluribus("train --data a.csv"), "a.csv cannot be read|Permission denied")
