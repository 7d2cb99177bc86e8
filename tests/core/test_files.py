"""Temporary files: what a killed process left is removed, and nothing else is."""

import os

import pytest

from pluribus.core import files
from pluribus.core.files import remove_leftovers, write_file


class Killed(BaseException):
    """As good as a kill: nothing after it cleans up."""


@pytest.fixture
def leftover(tmp_path, monkeypatch):
    """A temporary file as a process leaves it that is killed while it writes."""

    def die(_):
        raise Killed

    monkeypatch.setattr(files.os, "fsync", die)
    with pytest.raises(Killed):
        write_file(tmp_path / "result.json", "{")
    monkeypatch.undo()
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(".result.json.")
    return path


def test_what_a_killed_process_left_is_removed(leftover, tmp_path):
    old = tmp_path / ".step-00000012.safetensors.ab_d1234"  # of an older version
    old.touch()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_user_stay(leftover, tmp_path):
    names = [
        ".env.template",
        ".result.json.original",
        ".lock",
        "a.pluribus-tmp",
        ".x.pluribus-tmp",
        ".step-1.txt",
        "result.json",
    ]
    for name in names:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".folder.abcd1234.pluribus-tmp").mkdir()
    (tmp_path / ".link.abcd1234.pluribus-tmp").symlink_to(tmp_path / "result.json")
    remove_leftovers(tmp_path)
    assert not leftover.exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        *names,
        ".folder.abcd1234.pluribus-tmp",
        ".link.abcd1234.pluribus-tmp",
    }


def test_a_file_that_is_being_written_stays(tmp_path, monkeypatch):
    seen, sync = [], os.fsync

    def clean(handle):
        remove_leftovers(tmp_path)  # as another process does meanwhile
        seen.extend(path.name for path in tmp_path.iterdir())
        sync(handle)

    monkeypatch.setattr(files.os, "fsync", clean)
    write_file(tmp_path / "result.json", "{}")
    assert len(seen) == 1
    assert (tmp_path / "result.json").read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_file_that_was_removed_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    lock, calls = files.fcntl.flock, []

    def lose(handle, kind):
        calls.append(handle)
        if len(calls) == 1:
            next(tmp_path.iterdir()).unlink()
        lock(handle, kind)

    monkeypatch.setattr(files.fcntl, "flock", lose)
    write_file(tmp_path / "result.json", "{}")
    assert len(calls) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
