"""Names that people type."""

import difflib
from collections.abc import Iterable

from .texts import quote


def describe_unknown(what: str, given: str, known: Iterable[str]) -> str:
    """A sentence about a name that is not there: the nearest ones, or all of them.

    >>> describe_unknown("method", "mino", ["mimo", "inner"])
    "there is no method 'mino': did you mean 'mimo'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(given[:100].lower().replace("_", "-"), names, n=3, cutoff=0.6)
    if near:
        return f"there is no {what} {quote(given)}: did you mean {' or '.join(map(repr, near))}?"
    return f"there is no {what} {quote(given)}: choose one of {', '.join(names)}"
