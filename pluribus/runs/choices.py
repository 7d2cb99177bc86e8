"""Choices: a name with options, written `mimo`, `mimo:members=3,batch_repetition=2`, or as a mapping in a file."""

import contextlib
from collections.abc import Mapping
from typing import Any

from ..core.errors import PluribusError
from ..core.texts import quote
from ..file_formats.reading import parse_yaml_value


class ChoiceError(PluribusError, ValueError):
    """A choice that cannot be read."""


def parse_choice(text: str) -> dict[str, Any]:
    """Parse `NAME:option=value,…` into a name and options. Raises ChoiceError.

    >>> parse_choice("mimo:members=3,first=conv1")
    {'name': 'mimo', 'members': 3, 'first': 'conv1'}
    >>> parse_choice("nets.mine:build:hidden=[64, 64]")
    {'name': 'nets.mine:build', 'hidden': [64, 64]}
    """
    name, options = text.strip(), ""
    head, colon, tail = text.strip().rpartition(":")
    if colon and "=" in tail.split(",")[0]:
        name, options = head, tail
    if not name or "=" in name:
        raise ChoiceError(f"must be NAME or NAME:option=value,option=value, got {quote(text)}")
    choice: dict[str, Any] = {"name": name}
    for piece in split_at_commas(options):
        key, equals, value = piece.partition("=")
        if not equals or not key.strip() or key.strip() == "name":
            raise ChoiceError(f"options are written option=value, got {quote(piece)} in {quote(text)}")
        choice[key.strip()] = parse_value(value)
    return choice


def split_choices(text: str) -> list[str]:
    """Split a list of choices at its commas; a piece `option=value` belongs to the choice before it.

    >>> split_choices("inner,mimo:members=3,batch_repetition=2,treenet")
    ['inner', 'mimo:members=3,batch_repetition=2', 'treenet']
    """
    found: list[str] = []
    for piece in split_at_commas(text):
        head = piece.split("=")[0]
        if found and "=" in piece and ":" not in head:
            found[-1] += f",{piece}"
        else:
            found.append(piece.strip())
    return found


def split_at_commas(text: str) -> list[str]:
    """Split a text at the commas that are not inside brackets."""
    pieces, depth, begun = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            pieces.append(text[begun:place])
            begun = place + 1
    pieces.append(text[begun:])
    return [piece for piece in pieces if piece.strip()]


def parse_value(text: str) -> Any:
    """Parse a value as YAML does: a number, true, false, null, a [list] or a text. Unlike in YAML, 1e-3 is a number."""
    with contextlib.suppress(ValueError):
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    try:
        return parse_yaml_value(text)
    except ValueError:
        return text


def format_choice(choice: dict[str, Any]) -> str:
    """The short form of a choice, `NAME:option=value,…`.

    >>> format_choice({"name": "deep-ensemble", "members": 3, "of": {"name": "mimo"}})
    'deep-ensemble:members=3,of=mimo'
    >>> format_choice({"name": "deep-ensemble", "of": {"name": "mimo", "members": 2}})
    'deep-ensemble:of=mimo(members=2)'
    """

    def text(value: Any) -> str:
        if not isinstance(value, Mapping) or "name" not in value:
            return str(value)
        inner = ",".join(f"{key}={text(each)}" for key, each in value.items() if key != "name")
        return f"{value['name']}({inner})" if inner else value["name"]

    options = ",".join(f"{key}={text(value)}" for key, value in choice.items() if key != "name")
    return f"{choice['name']}:{options}" if options else choice["name"]
