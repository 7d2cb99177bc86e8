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


def format_amount(x: float) -> str:
    """A number in the unit of a regression's target: four digits, and all those before the point of a large one.

    >>> format_amount(0.123456), format_amount(2.52), format_amount(68211.49), format_amount(-2.5e6)
    ('0.1235', '2.520', '68211', '-2500000')
    """
    return f"{x:.0f}" if 999.95 <= abs(x) < 1e15 else f"{x:#.4g}"
