"""Reading and writing of JSON and YAML files, with limits, schemas and digests.

Refused are files that are larger than `LARGEST_JSON` or `LARGEST_YAML`, that are nested deeper than `DEEPEST`, that name a key
twice, that hold NaN, infinity or a whole number of more than 100 digits, and YAML with anchors, aliases or tags: a few lines
of aliases can stand for gigabytes. Every refusal is a FileError with one sentence.
"""

import copy
import functools
import json
import math
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import ValidationError

from ..core.errors import FileError
from ..core.files import format_json, write_file
from ..core.texts import quote, shorten
from .digests import DIGEST, YAML_PREFIX, digest_content, digest_text, split_yaml_digest
from .explanations import describe_fault
from .schema import AnySchema

LARGEST_JSON = 64 * 2**20
LARGEST_YAML = 4 * 2**20
"""In bytes. A grid of 5,000 runs has less."""
DEEPEST = 40
LARGEST_NUMBER = 10**100
"""Any whole number below it is a seed."""
_LONG_NUMBER = "holds a whole number of more than 100 digits"
WRITE_SETTINGS = "write `setting: value`, one a line"


class _Refused(ValueError):
    """What is wrong with the content of a file, as a phrase that follows "it"."""


def read_json(path: Path, schema: AnySchema) -> dict[str, Any]:
    """Read a JSON record, without its digest. Raises FileError unless it is whole, unchanged and as the schema says."""
    try:
        content = parse_json(read_text(path, LARGEST_JSON))
        digest = content.pop(DIGEST, None)
        if digest is not None and digest != digest_content(content):
            raise _describe_change(path, schema)
        return _validate(content, schema)
    except _Refused as error:
        raise _describe_damage(path, schema, error) from error


def parse_record(text: str, schema: AnySchema, name: str) -> dict[str, Any]:
    """Parse a JSON record that stands in another file; messages call it `name`. Raises FileError unless it fits the schema."""
    try:
        if len(text) > LARGEST_JSON:
            raise _Refused(f"is larger than {LARGEST_JSON / 2**20:g} MiB, the most that is read")
        return _validate(parse_json(text), schema)
    except _Refused as error:
        raise FileError(f"{name} is damaged, it {error}: {schema.cure}") from error


def read_yaml(path: Path, schema: AnySchema) -> dict[str, Any]:
    """Read a YAML record that pluribus wrote. Raises FileError unless it is whole, unchanged and as the schema says."""
    try:
        text = read_text(path, LARGEST_YAML)
        digest, rest = split_yaml_digest(text)
        if digest is not None and digest != digest_text(rest):
            raise _describe_change(path, schema)
        return _validate(parse_yaml(text), schema)
    except _Refused as error:
        raise _describe_damage(path, schema, error) from error


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML file that the user names and may have edited: no digest is verified, and no schema. Raises FileError."""
    if not path.exists():
        raise FileError(f"there is no configuration {path}")
    if path.is_dir():
        raise FileError(f"{path} is a folder: name a YAML file (of a run, {path / 'config.yaml'})")
    try:
        return parse_yaml(read_text(path, LARGEST_YAML))
    except _Refused as error:
        raise FileError(f"{path} {error}: {WRITE_SETTINGS}") from error


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON record with its digest; None stands for NaN and infinity. Raises FileError if it cannot be written."""
    plain = json.loads(format_json(content))
    write_file(path, format_json({DIGEST: digest_content(plain)} | plain) + "\n")


def write_yaml(path: Path, content: dict[str, Any]) -> None:
    """Write a YAML record with its digest. Raises FileError if it cannot be written."""
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    write_file(path, f"{YAML_PREFIX}{digest_text(text)}\n{text}")


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse_json(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError with a phrase about what is wrong."""
    try:
        content = json.loads(text, object_pairs_hook=_collect_keys, parse_constant=_refuse_constant, parse_int=_parse_whole)
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise _Refused(f"is no JSON (line {error.lineno})") from None
    if not isinstance(content, dict):
        raise _Refused(f"must hold an object, got {_describe_kind(content)}")
    _check_values(content)
    return content


def parse_yaml(text: str) -> dict[str, Any]:
    """Parse a YAML mapping. Raises ValueError with a phrase about what is wrong."""
    content = parse_yaml_value(text)
    if not isinstance(content, dict):
        raise _Refused(f"must hold settings, one `setting: value` a line, got {_describe_kind(content)}")
    return content


def parse_yaml_value(text: str) -> Any:
    """Parse any YAML value, within the limits. Raises ValueError with a phrase about what is wrong."""
    return copy.deepcopy(_parse_yaml_once(text))


@functools.lru_cache(maxsize=16)  # a run reads its configuration five times, and PyYAML takes milliseconds for each
def _parse_yaml_once(text: str) -> Any:
    try:
        content = yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise _too_deep() from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _Refused(f"is no YAML{f', line {mark.line + 1}' if mark else ''}") from None
    except _Refused:
        raise
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError, IndexError) as error:
        # PyYAML converts what looks like a number or a date, and leaves Python's own errors as they are.
        raise _Refused(f"holds a value that cannot be read ({shorten(str(error))})") from None
    _check_values(content)
    return content


def read_text(path: Path, largest: int) -> str:
    """The text of a regular file. Raises FileError if it cannot be read, and _Refused if it is too large or not UTF-8."""
    try:
        if not path.is_file():
            raise FileError(f"{path} is no file" if path.exists() else f"there is no file {path}")
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > largest:
        raise _Refused(f"is larger than {largest / 2**20:g} MiB, the most that is read")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _Refused(f"is no text in UTF-8 (byte {error.start})") from None


def _validate(content: dict[str, Any], schema: AnySchema) -> dict[str, Any]:
    try:
        schema.model_validate(content)
    except ValidationError as error:
        raise _Refused(describe_fault(error)) from None
    return content


def _describe_damage(path: Path, schema: AnySchema, fault: _Refused) -> FileError:
    if schema.holds:
        return FileError(f"{path} does not hold {schema.holds} (it {fault}): {schema.cure}")
    return FileError(f"{path} is damaged, it {fault}: {schema.cure}")


def _describe_change(path: Path, schema: AnySchema) -> FileError:
    return FileError(f"{path} was changed or damaged after it was written: {schema.cure}")


def _too_deep() -> _Refused:
    return _Refused(f"is nested more than {DEEPEST} levels deep")


def _collect_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [key for key, _ in pairs]
        raise _Refused(f"has the key {shorten(next(key for key in names if names.count(key) > 1))!r} twice")
    return content


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"holds {name}, which is no number of JSON")


def _parse_whole(text: str) -> int:
    if len(text) > 101:  # Python itself refuses more than 4,300 digits, with an error of its own
        raise _Refused(_LONG_NUMBER)
    return int(text)


def _check_values(content: Any) -> None:
    """Raise _Refused if a parsed value is nested too deep, or holds what no record may hold."""
    todo = [(content, 0)]
    while todo:
        value, depth = todo.pop()
        if isinstance(value, dict | list):
            if depth >= DEEPEST:
                raise _too_deep()
            if isinstance(value, dict):
                strange = next((key for key in value if not isinstance(key, str)), None)
                if strange is not None or None in value:
                    raise _Refused(f"must hold settings, one `setting: value` a line: {quote(strange)} is no setting's name")
            todo += [(entry, depth + 1) for entry in (value.values() if isinstance(value, dict) else value)]
        elif isinstance(value, int):
            if abs(value) >= LARGEST_NUMBER:
                raise _Refused(_LONG_NUMBER)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise _Refused("holds a number that is not finite")
        elif value is not None and not isinstance(value, str):
            raise _Refused(f"holds a {type(value).__name__}: put it in quotes, if it is a text")


def _describe_kind(value: Any) -> str:
    return {list: "a list", dict: "an object", type(None): "nothing"}.get(type(value), "a single value")


class _Loader(yaml.SafeLoader):
    """A SafeLoader that refuses anchors, aliases, tags and deep nesting before it builds anything."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _Refused(f"has an anchor or an alias ({shorten(str(event.anchor))}), line {event.start_mark.line + 1}")
        if getattr(event, "tag", None) is not None:
            raise _Refused(f"has a tag ({shorten(str(event.tag))}), line {event.start_mark.line + 1}")
        if self.depth > DEEPEST:
            raise _too_deep()
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        content = super().construct_mapping(node, deep)
        if len(content) < len(node.value):
            names = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = next(key for key in names if names.count(key) > 1)
            raise _Refused(f"has the key {quote(twice)} twice, line {node.start_mark.line + 1}")
        return content


class _Dumper(yaml.SafeDumper):
    """A SafeDumper that writes a value twice rather than an alias, which is refused when it is read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
