"""Texts from outside, cut to what fits into a message."""

from typing import Any

LONGEST = 60


def shorten(text: str, length: int = LONGEST) -> str:
    """Cut a text to this length.

    >>> shorten("a" * 100, 10)
    'aaaaaaaaa…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def quote(value: Any, length: int = LONGEST) -> str:
    """Return the `repr` of a value, cut to this length.

    >>> quote("a" * 100, 10)
    "'aaaaaaaa…"
    """
    try:
        return shorten(repr(value), length)
    except (RecursionError, ValueError):  # too deep, or a whole number of too many digits
        return "a huge number" if isinstance(value, int) else f"a {type(value).__name__}"
