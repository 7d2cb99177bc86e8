"""Text on a terminal. Names of files, labels and messages come from outside: nothing in them is markup, a colour or a command.

Rich reads `[red]` and `[/b]` as markup wherever it prints a string, in cells of tables too. The console here does not: what is
styled is a `rich.text.Text`, and every string is shown as it is, without control characters.
"""

from typing import Any

from rich.console import Console
from rich.text import Text

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
CONTROL = dict.fromkeys(
    [
        *(code for code in (*range(32), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"),
        *range(0x202A, 0x202F),  # they change the direction of the text after them
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),  # bytes of a file name that are not UTF-8
    ],
    REPLACEMENT,
)


def clean_text(text: str) -> str:
    """Replace what a terminal would obey rather than show, and what cannot be encoded.

    >>> clean_text("a\\x1b[31m.png")
    'a�[31m.png'
    """
    return text.translate(CONTROL)


class PlainConsole(Console):
    """A console that shows strings as they are."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(clean_text(text), **options)


def assemble_text(*parts: str | tuple[str, str]) -> Text:
    """A line of strings, some of them with a style: `assemble_text(("title", "bold"), ", 3 rows")`."""
    return Text.assemble(*(clean_text(part) if isinstance(part, str) else (clean_text(part[0]), part[1]) for part in parts))


def create_console(**options: Any) -> Console:
    """A console without markup, emoji codes and automatic colours; `options` are those of `rich.console.Console`."""
    return PlainConsole(**{"markup": False, "emoji": False, "highlight": False} | options)
