"""Every file that is damaged or hostile is refused with one sentence that names it, and what can be done."""

import json
import os
from typing import Any, ClassVar

import pytest
import yaml

from pluribus.core.errors import FileError
from pluribus.file_formats import reading
from pluribus.file_formats.reading import read_json, read_settings, read_yaml, write_json, write_yaml
from pluribus.file_formats.run_files import LARGEST_ROW
from pluribus.file_formats.schema import Count, Number, Schema
from pluribus.runs.config import MOST
from pluribus.runs.grid import MOST_SEEDS


class Note(Schema):
    cure: ClassVar[str] = "write it again"

    count: Count
    value: Number = None
    more: dict[str, Any] | list[Any] | None = None


BOMB = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b, *b]\n"
WRONG_JSON = {
    "nothing": (b"", "it is no JSON"),
    "cut": (b'{"count": 3', "it is no JSON"),
    "a list": (b"[1]", "it must hold an object, got a list"),
    "null": (b"null", "it must hold an object, got nothing"),
    "no UTF-8": (b'{"count": "\xff"}', "it is no text in UTF-8"),
    "NaN": (b'{"count": 1, "value": NaN}', "it holds NaN"),
    "infinity": (b'{"count": 1, "value": -Infinity}', "it holds -Infinity"),
    "an overflow": (b'{"count": 1, "value": 1e400}', "a number that is not finite"),
    "thousands of digits": (b'{"count": ' + b"9" * 5000 + b"}", "a whole number of more than 100 digits"),
    "101 digits": (b'{"count": 1, "more": [1' + b"0" * 100 + b"]}", "more than 100 digits"),
    "a key twice": (b'{"count": 1, "count": 2}', "it has the key 'count' twice"),
    "nested": (b'{"count": 1, "more": ' + b"[" * 50 + b"]" * 50 + b"}", "nested more than 40 levels deep"),
    "nested beyond the stack": (b"[" * 200_000, "nested more than 40 levels deep"),
    "a missing key": (b"{}", "it lacks the key 'count'"),
    "an unknown key": (b'{"count": 1, "cuont": 2}', "it has the unknown key 'cuont'"),
    "a text for a number": (b'{"count": "1"}', "it must have a whole number for 'count', got '1'"),
    "true for a number": (b'{"count": true}', "it must have a whole number for 'count', got True"),
    "a negative count": (b'{"count": -1}', "it must have at least 0 for 'count', got -1"),
}
WRONG_YAML = {
    "nothing": ("", "must hold settings, one `setting: value` a line, got nothing"),
    "a list": ("- 1\n", "must hold settings, one `setting: value` a line, got a list"),
    "half a list": ("count: [1,\n", "is no YAML, line 2"),
    "an anchor": (BOMB, r"has an anchor or an alias \(a\), line 1"),
    "an alias of nothing": ("count: *a\n", r"has an anchor or an alias \(a\), line 1"),
    "a tag": ("count: !!python/object/apply:os.system [ls]\n", r"has a tag \(tag:yaml.org,2002:python/object"),
    "thousands of digits": ("count: " + "9" * 5000 + "\n", "a value that cannot be read"),
    "a huge hexadecimal number": ("count: 0x" + "f" * 9000 + "\n", "more than 100 digits"),
    "a huge key": ("? 0x" + "f" * 9000 + "\n: 1\n", "a huge number is no setting's name"),
    "a date that is none": ("count: 2020-13-45\n", "a value that cannot be read"),
    "a date": ("count: 2020-12-24\n", "holds a date: put it in quotes"),
    "infinity": ("count: .inf\n", "a number that is not finite"),
    "a key twice": ("count: 1\ncount: 2\n", "has the key 'count' twice"),
    "a key that is no text": ("1: 2\n", "1 is no setting's name"),
    "no key": ("~: 2\n", "None is no setting's name"),
    "a list as a key": ("? [1]\n: 2\n", "is no YAML, line 1"),
    "nested": ("count: " + "[" * 60 + "]" * 60 + "\n", "nested more than 40 levels deep"),
    "nested beyond the stack": ("[" * 20_000, "nested more than 40 levels deep"),
    "nested mappings": ("count: " + "{a: " * 60 + "1" + "}" * 60 + "\n", "nested more than 40 levels deep"),
    "control letters": ("count: \x00\n", "is no YAML"),
}


@pytest.mark.parametrize("name", WRONG_JSON)
def test_a_damaged_json_file_is_refused(name, tmp_path):
    content, said = WRONG_JSON[name]
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FileError, match=rf"a\.json is damaged, .*{said}.*: write it again$") as error:
        read_json(tmp_path / "a.json", Note)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("name", WRONG_YAML)
def test_a_damaged_yaml_file_is_refused(name, tmp_path):
    content, said = WRONG_YAML[name]
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(FileError, match=rf"a\.yaml is damaged, it .*{said}.*: write it again$"):
        read_yaml(tmp_path / "a.yaml", Note)
    with pytest.raises(FileError, match=rf"a\.yaml .*{said}.*: write `setting: value`, one a line"):
        read_settings(tmp_path / "a.yaml")


def test_the_limits_are_those_of_the_documentation():
    assert (reading.LARGEST_JSON, reading.LARGEST_YAML, reading.DEEPEST) == (64 * 2**20, 4 * 2**20, 40)
    assert (LARGEST_ROW, MOST, MOST_SEEDS) == (10**8, {"members": 1000, "copies": 1000, "samples": 100_000}, 10_000)


def test_files_beyond_the_limit_of_size_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGEST_JSON", 2**10)
    monkeypatch.setattr(reading, "LARGEST_YAML", 2**10)
    (tmp_path / "a").write_text(" " * 2**10 + '{"count": 1}')
    for read in (read_json, read_yaml):
        with pytest.raises(FileError, match=r"is larger than 0\.00097\d* MiB, the most that is read"):
            read(tmp_path / "a", Note)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: None])
def test_what_is_no_regular_file_is_refused_without_waiting(make, tmp_path):
    make(tmp_path / "a.json")
    with pytest.raises(FileError, match=r"is no file|there is no file"):
        read_json(tmp_path / "a.json", Note)


def test_a_record_has_a_digest_and_is_read_without_it(tmp_path):
    content = {"count": 2, "value": float("nan"), "more": {"x": [1, 2.5, "ä\udcff", None]}}
    write_json(tmp_path / "a.json", content)
    read = read_json(tmp_path / "a.json", Note)
    assert read == content | {"value": None}
    assert next(iter(json.loads((tmp_path / "a.json").read_bytes()))) == "digest"
    write_yaml(tmp_path / "a.yaml", read)
    assert read_yaml(tmp_path / "a.yaml", Note) == read
    assert (tmp_path / "a.yaml").read_text().startswith("# digest: sha256:")


@pytest.mark.parametrize(("write", "read", "name"), [(write_json, read_json, "a.json"), (write_yaml, read_yaml, "a.yaml")])
def test_a_record_that_was_changed_is_refused_and_one_without_a_digest_is_read(write, read, name, tmp_path):
    file = tmp_path / name
    write(file, {"count": 2})
    text = file.read_text()
    file.write_text(text.replace("2", "3") if name.endswith("yaml") else text.replace('"count": 2', '"count": 3'))
    with pytest.raises(FileError, match=rf"{name} was changed or damaged after it was written: write it again"):
        read(file, Note)
    lines = text.splitlines()
    without = [line for line in lines if "digest" not in line]
    assert len(without) < len(lines)
    file.write_text("\n".join(without))
    assert read(file, Note) == {"count": 2}


def test_one_flipped_bit_anywhere_in_a_record_is_refused(tmp_path):
    write_json(tmp_path / "a.json", {"count": 2, "value": 0.25, "more": ["abc"]})
    data = (tmp_path / "a.json").read_bytes()
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            (tmp_path / "a.json").write_bytes(changed)
            try:
                read = read_json(tmp_path / "a.json", Note)
            except FileError:
                continue
            assert read == {"count": 2, "value": 0.25, "more": ["abc"]}, "white space, perhaps, but never another content"


def test_a_file_that_the_user_edits_may_be_one_that_we_wrote(tmp_path):
    write_yaml(tmp_path / "a.yaml", {"seed": 2})
    (tmp_path / "a.yaml").write_text((tmp_path / "a.yaml").read_text().replace("seed: 2", "seed: 3"))
    assert read_settings(tmp_path / "a.yaml") == {"seed": 3}


def test_what_we_write_as_yaml_has_no_aliases(tmp_path):
    shared = [1, 2]
    write_yaml(tmp_path / "a.yaml", {"count": 1, "more": {"a": shared, "b": shared}})
    assert read_yaml(tmp_path / "a.yaml", Note)["more"] == {"a": [1, 2], "b": [1, 2]}
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["count"] == 1
