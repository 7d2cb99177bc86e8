"""What pydantic found wrong, in one plain sentence."""

import re
from typing import Any

from pydantic import ValidationError

from ..core.suggestions import describe_unknown
from ..core.texts import shorten


def describe_fault(error: ValidationError) -> str:
    """What is wrong with a file, by the first error that pydantic found: a phrase that follows "it"."""
    first = error.errors(include_url=False)[0]
    key = shorten(".".join(str(step) for step in first["loc"]))
    if first["type"] == "missing":
        return f"lacks the key {key!r}"
    if first["type"] == "extra_forbidden":
        return f"has the unknown key {key!r}"
    if first["type"] == "value_error":  # our own
        message = str(first["msg"]).removeprefix("Value error, ")
        return f"has a wrong {key!r}: {message}" if key else message
    got = shorten(repr(first.get("input")))
    expected = describe_expected(first)
    return f"must have {expected} for {key!r}, got {got}" if key else f"must hold {expected}, got {got}"


def describe_expected(error: Any, mapping: str = "a mapping") -> str:
    """What pydantic expected, in plain words; `mapping` is what a mapping is called."""
    limits, kind = error.get("ctx", {}), error["type"]
    if kind == "literal_error":
        choices = limits["expected"].replace("'", "")
        near = describe_unknown("", str(error.get("input")), re.split(", | or ", choices)).partition("did you mean ")[2]
        return f"{choices} (did you mean {near.rstrip('?')}?)" if near else choices
    words = {"greater_than_equal": "at least {ge:g}", "greater_than": "more than {gt:g}", "less_than": "less than {lt:g}"}
    words |= {"less_than_equal": "at most {le:g}", "finite_number": "a finite number", "int_parsing_size": "a smaller number"}
    words |= {"too_long": "at most {max_length} entries", "too_short": "at least {min_length} entries", "dict_type": mapping}
    if kind in words:
        return words[kind].format(**limits)
    names = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text"}
    names |= {"tuple": "a list", "list": "a list", "model": mapping}
    return names.get(kind.split("_")[0], str(error["msg"]).removeprefix("Input should be "))
