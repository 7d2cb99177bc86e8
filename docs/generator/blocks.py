"""Blocks of a page that are generated when the site is built, so that they cannot drift from code and recorded results.

`<!-- generate: NAME -->` in a page stands for a block. Pages of methods get theirs by themselves (method_pages.py).
"""

import re
from collections.abc import Callable

from chosen import format_choices, format_every_method, format_specs, read_known
from method_pages import add_facts, find_method

DIRECTIVE = re.compile(r"^<!-- generate: ([\w-]+) -->$", re.MULTILINE)
BLOCKS: dict[str, Callable[[], str]] = {
    "choices": format_choices,
    "every-method": format_every_method,
    "known": read_known,
    "specs": format_specs,
}


def fill_page(text: str, path: str) -> str:
    """The text of a page, `path` in the site, with its generated blocks.

    Raises ValueError if it asks for a block that does not exist.
    """

    def write_block(match: re.Match[str]) -> str:
        if match[1] not in BLOCKS:
            raise ValueError(f"{path} asks for the block {match[1]!r}, which is none of {', '.join(BLOCKS)}")
        return BLOCKS[match[1]]()

    kind = find_method(path)
    return DIRECTIVE.sub(write_block, text) if kind is None else add_facts(text, kind)
