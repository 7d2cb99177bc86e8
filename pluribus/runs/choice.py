"""A name with options, as people write it: `mimo`, `mimo:members=3,batch_repetition=2`, or a mapping in a file."""

import contextlib
from typing import Any

import yaml

from ..core.errors import PluribusError


class ChoiceError(PluribusError, ValueError):
    """A choice that cannot be read."""


def parse(text: str) -> dict[str, Any]:
    """
    >>> parse("mimo:members=3,first=conv1")
    {'name': 'mimo', 'members': 3, 'first': 'conv1'}
    >>> parse("nets.mine:build:hidden=[64, 64]")
    {'name': 'nets.mine:build', 'hidden': [64, 64]}
    """
    name, options = text.strip(), ""
    head, colon, tail = text.strip().rpartition(":")
    if colon and "=" in tail.split(",")[0]:
        name, options = head, tail
    if not name or "=" in name:
        raise ChoiceError(f"must be NAME or NAME:option=value,option=value, got {text!r}")
    choice: dict[str, Any] = {"name": name}
    for piece in split(options):
        key, equals, value = piece.partition("=")
        if not equals or not key.strip() or key.strip() == "name":
            raise ChoiceError(f"options are written option=value, got {piece!r} in {text!r}")
        choice[key.strip()] = scalar(value)
    return choice


def several(text: str) -> list[str]:
    """Choices between commas; a piece `option=value` belongs to the one before it.

    >>> several("inner,mimo:members=3,batch_repetition=2,treenet")
    ['inner', 'mimo:members=3,batch_repetition=2', 'treenet']
    """
    found: list[str] = []
    for piece in split(text):
        head = piece.split("=")[0]
        if found and "=" in piece and ":" not in head:
            found[-1] += f",{piece}"
        else:
            found.append(piece.strip())
    return found


def split(text: str) -> list[str]:
    """At commas that are not inside brackets."""
    pieces, depth, begun = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            pieces.append(text[begun:place])
            begun = place + 1
    pieces.append(text[begun:])
    return [piece for piece in pieces if piece.strip()]


def scalar(text: str) -> Any:
    """A number, true, false, null, a [list] or a text, as YAML reads it; but 1e-3 is a number, which YAML writes 1.0e-3."""
    with contextlib.suppress(ValueError):
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def written(choice: dict[str, Any]) -> str:
    """The short form, for people."""
    options = ",".join(f"{key}={value}" for key, value in choice.items() if key != "name")
    return f"{choice['name']}:{options}" if options else choice["name"]
