"""Blocks of a page that are generated when the site is built, so that they cannot drift from code and recorded results.

`<!-- generate: NAME -->` in a page stands for a block. Pages of methods have blocks of their own (method_pages.py).
"""

import re
from collections.abc import Callable

from chosen import format_choices, format_every_method
from method_pages import BLOCKS, find_method

DIRECTIVE = re.compile(r"^<!-- generate: ([\w-]+) -->$", re.MULTILINE)
OTHERS: dict[str, Callable[[], str]] = {"choices": format_choices, "every-method": format_every_method}


def fill_page(text: str, path: str) -> str:
    """The text of a page, `path` in the site, with its generated blocks.

    Raises ValueError if it asks for a block that does not exist.
    """

    def write_block(match: re.Match[str]) -> str:
        name, kind = match[1], find_method(path)
        if kind is not None and name in BLOCKS:
            return BLOCKS[name](kind)
        if name in OTHERS:
            return OTHERS[name]()
        known = ", ".join([*(BLOCKS if kind else ()), *OTHERS])
        raise ValueError(f"{path} asks for the block {name!r}, which is none of {known}")

    return DIRECTIVE.sub(write_block, text)
