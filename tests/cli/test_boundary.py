"""The boundary of the command line: whatever happens inside, and whatever standard output is, there is no traceback."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from pluribus.cli.error_log import KEPT, delete_old_logs
from pluribus.cli.streams import prepare_streams, print_json

from ..processes import fork_pluribus
from .conftest import call_pluribus
from .files import photos, png
from .wrong_records import OWN, own_nets

LABELS = ("[red]", "a[", "\x1b[31mcat")


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """`broken(error)`: every command that measures costs raises it; logs go to a folder of the test."""
    monkeypatch.setenv("PLURIBUS_LOGS", str(tmp_path / "logs"))

    def set_error(error):
        def raise_error(*_):
            raise error

        monkeypatch.setattr("pluribus.bench.counted_costs.count_relative_costs", raise_error)

    return set_error


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError("deep"), OverflowError("large"), UnicodeError("bytes")])
def test_an_unexpected_error_is_one_sentence_with_the_place_of_its_log(error, broken, pluribus, tmp_path):
    broken(error)
    answer = pluribus("methods mimo")
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    said = re.fullmatch(r"pluribus: an unexpected error, .*; the log is (\S+)\n", answer.err)
    assert said, answer.err
    assert type(error).__name__ in answer.err
    log = Path(said.group(1)).read_text()
    assert Path(said.group(1)).parent == tmp_path / "logs"
    assert log.startswith("pluribus methods mimo\n")
    assert "Traceback" in log
    assert f"python {sys.version.split()[0]}" in log
    assert "torch 2" in log


def test_a_log_goes_to_the_temporary_folder_if_there_is_no_other(broken, pluribus, monkeypatch, tmp_path):
    broken(KeyError("x"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("PLURIBUS_LOGS", "/proc/none")
    answer = pluribus("methods mimo")
    assert answer.code == 1
    assert f"the log is {tmp_path / 'temporary'}/pluribus-" in answer.err


def test_old_logs_are_deleted(tmp_path):
    for number in range(KEPT + 5):
        (tmp_path / f"pluribus-{number}.log").touch()
        os.utime(tmp_path / f"pluribus-{number}.log", (number, number))
    (tmp_path / "mine.log").touch()
    delete_old_logs(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"mine.log", *(f"pluribus-{number}.log" for number in range(5, KEPT + 5))}


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")]
)
def test_too_little_memory_is_said_with_the_cure(error, broken, pluribus):
    broken(error)
    answer = pluribus("methods mimo")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "there is not enough memory: use smaller batches" in answer.err


def test_a_network_that_raises_in_training_is_named_with_its_place_and_the_log(pluribus, monkeypatch, work, tmp_path):
    monkeypatch.setenv("PLURIBUS_LOGS", str(tmp_path / "logs"))
    own_nets(work)
    answer = pluribus(f"{OWN}Later --out run")
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    line = (work / "nets.py").read_text().splitlines().index('            raise KeyError("cupboard")') + 1
    assert f"forward, line {line} of {work / 'nets.py'}, raised KeyError: 'cupboard'; the log is {tmp_path}" in answer.err


def test_a_network_that_raises_in_a_grid_leaves_its_traceback_in_the_folder(pluribus, work):
    own_nets(work)
    answer = pluribus(f"{OWN}Later --seeds 2 --out g")
    assert answer.code == 2
    assert answer.err.endswith("pluribus: 2 of 2 runs did not finish; single-seed0: KeyError: 'cupboard'\n")
    kept = (work / "g/single-seed0/failed.txt").read_text()
    assert kept.startswith("KeyError: 'cupboard'\n\nTraceback")
    (work / "g/single-seed0/failed.txt").write_bytes(b"\xff\xfe" * 5000)
    assert pluribus("train --resume g").code == 2


# --- standard output ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["methods", "data check digits", "--help"])
def test_a_reader_that_has_gone_ends_the_command_quietly(words, work, tmp_path):
    """What `pluribus … | head -1` leads to: Rich, click and Typer print the three."""
    with (tmp_path / "errors").open("w") as errors:
        end, start = os.pipe()
        os.close(end)
        child = fork_pluribus(words.split(), work, output=start, prepare=lambda: os.dup2(errors.fileno(), 2))
        os.close(start)
        child.join(60)
    assert child.exitcode == 1
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_streams_that_are_closed_at_the_start_lead_nowhere(closed, work):
    def close():
        for stream in closed:
            os.close(stream)
            name = ("stdin", "stdout", "stderr")[stream]
            setattr(sys, name, None)

    out = os.open(work / "out", os.O_CREAT | os.O_RDWR)
    child = fork_pluribus(["data", "check", "digits"], work, output=out, prepare=close)
    os.close(out)
    child.join(60)
    assert child.exitcode == 0
    assert ("test rows" in (work / "out").read_text()) == (1 not in closed)


def test_a_closed_output_in_a_process_of_its_own(work):
    done = subprocess.run(
        f"'{sys.executable}' -m pluribus --version >&-; echo code $? >&2",
        shell=True,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "code 0\n")


@contextlib.contextmanager
def ascii_streams():
    """Standard output and error as `PYTHONIOENCODING=ascii` makes them; yields a function that reads them."""
    streams = [io.TextIOWrapper(io.BytesIO(), "ascii") for _ in range(2)]

    def read():
        for stream in streams:
            stream.flush()
        return tuple(stream.buffer.getvalue().decode("ascii") for stream in streams)

    with mock.patch.object(sys, "stdout", streams[0]), mock.patch.object(sys, "stderr", streams[1]):
        yield read


def test_letters_that_the_output_lacks_are_question_marks(work):
    with ascii_streams() as read:
        assert call_pluribus("methods", "mimo") == 0
        out, err = read()
    assert "1.02 ? the parameters" in out
    assert err == ""


def test_json_loses_nothing_on_an_ascii_output():
    with ascii_streams() as read:
        prepare_streams()
        print_json({"label": "Größe", "value": float("nan")})
        out, _ = read()
    assert json.loads(out) == {"label": "Größe", "value": None}


# --- names that look like markup ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def painted(tmp_path_factory):
    """A run of images whose labels look like markup, or hold a command to the terminal."""
    folder = tmp_path_factory.mktemp("painted")
    photos(classes=LABELS, each=12)(folder)
    words = ["--data", str(folder / "photos"), "--model", "mlp:hidden=[4]", "--epochs", "1", "--quiet"]
    assert call_pluribus("train", *words, "--out", str(folder / "run[/b]")) == 0
    return folder / "run[/b]"


@pytest.mark.parametrize("name", ["a[/b].png", "[red]x.png", "[link=x]y[/link].png", ":smile:.png"])
def test_file_names_and_labels_that_look_like_markup_are_shown_as_they_are(name, painted, pluribus, work):
    png(name)(work)
    answer = pluribus(f"predict '{painted}' '{name}'")
    assert (answer.code, answer.err) == (0, "")
    assert name in answer.out
    row = json.loads(pluribus(f"predict '{painted}' '{name}' --json").out)
    assert row["file"] == name
    assert row["label"] in LABELS
    assert row["label"].replace("\x1b", "�") in answer.out
    assert "\x1b" not in answer.out


def test_a_file_name_that_is_not_utf8_is_shown_and_written_as_json(painted, pluribus, work):
    png("x.png")(work)
    name = os.fsdecode(b"\xff[b].png")
    (work / "x.png").rename(work / name)
    answer = pluribus(f"predict '{painted}' '{name}'")
    assert (answer.code, answer.err) == (0, "")
    assert "�[b].png" in answer.out
    answer = pluribus(f"predict '{painted}' '{name}' --json")
    assert json.loads(answer.out)["file"] == name


@pytest.mark.parametrize("line", ["train --resume '{}'", "evaluate '{}' --no-cost"])
def test_a_folder_that_looks_like_markup_is_named_as_it_is(line, painted, pluribus):
    answer = pluribus(line.format(painted))
    assert (answer.code, answer.err) == (0, "")
    assert "run[/b]" in answer.out


@pytest.mark.parametrize("line", ["'[/b]'", "methods '[/b]'", "evaluate '[red]x[/b]'", "train --data '[/b]'", "train '--[/b]'"])
def test_a_wrong_word_that_looks_like_markup_is_repeated_as_it_is(line, pluribus):
    answer = pluribus(line)
    assert answer.code == 2
    assert "[/b]" in answer.err
    assert "Traceback" not in answer.err


def test_a_long_value_is_not_repeated_whole(pluribus, work):
    """Found by `make fuzz`: a list in place of a name made a sentence of 6,000 characters."""
    (work / "long.yaml").write_text(f"method: {{name: {[1] * 2000}}}\n")
    answer = pluribus("train --config long.yaml")
    assert answer.code == 2
    assert len(answer.err) < 300
