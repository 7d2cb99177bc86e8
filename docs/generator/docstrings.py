"""Docstrings as the reference shows them: examples become code, and what several arguments share stands beside each."""

import re
from textwrap import indent
from typing import Any

import griffe


class TidyDocstrings(griffe.Extension):
    """Rewrite the docstrings that mkdocstrings has collected, before it reads their sections."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = tidy_docstring(obj.docstring.value)


def tidy_docstring(text: str) -> str:
    """The docstring in the form that the reader of Google's style and Markdown understands.

    >>> print(tidy_docstring("Args:\\n    a, b: numbers.").rstrip())
    Args:
        a: numbers.
        b: numbers.
    """
    text = re.sub(r"^( *)>>> .*(?:\n\1\S.*)*", fence_example, text, flags=re.MULTILINE)
    text = re.sub(r"^Args:\n((?:    .*\n?|\n(?=    ))+)", split_arguments, text, flags=re.MULTILINE)
    return re.sub(r"^Raises:\n((?:    .*\n?)+)", join_raises, text, flags=re.MULTILINE)


def fence_example(match: re.Match[str]) -> str:
    """An example of the interpreter as a block of code."""
    margin = match[1]
    return f"\n{margin}```pycon\n{match[0]}\n{margin}```"


def split_arguments(match: re.Match[str]) -> str:
    """Several arguments with one description, each with its own."""

    def repeat(entry: re.Match[str]) -> str:
        return "".join(f"    {name}:{entry[2]}" for name in entry[1].split(", "))

    body = match[1] if match[1].endswith("\n") else match[1] + "\n"
    return (
        "Args:\n" + re.sub(r"^    (\w+(?:, \w+)+):(.*\n(?:     .*\n)*)", repeat, body, flags=re.MULTILINE).rstrip("\n") + "\n"
    )


def join_raises(match: re.Match[str]) -> str:
    """Errors with their conditions as a sentence, where they are not a list of names."""
    lines = [line.strip() for line in match[1].splitlines()]
    if all(re.match(r"\w+: |", line) and (":" in line or not re.match(r"[A-Z]\w*(,| or| if)", line)) for line in lines):
        return match[0]
    return indent("**Raises:** " + " ".join(lines), "") + "\n"
