"""The code blocks of a page, as tests/docs/test_blocks.py runs them.

Comments before a block, which readers do not see, say how it is run there:

    <!-- test: parsed -->            only whether the command line takes the commands, for those that need data or hours
    <!-- test: epochs=20 | epochs=1 -->   with the left words replaced by the right ones, to be fast; several may follow
    <!-- setup: python … -->         Python that is run before the block: what the reader has and the page does not show

A block of Python with a title (```python title="nets.py") is a file, which is written into the working folder.
"""

import re
from dataclasses import dataclass

PARTS = re.compile(
    r"^<!-- (?P<kind>test|setup): (?P<said>.*?) ?-->$|^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A code block: its language, its code as it is run, the line where it begins, and what comments say of it."""

    language: str
    code: str
    line: int
    title: str | None = None
    is_parsed: bool = False


def list_blocks(text: str) -> list[Block]:
    """The code blocks of a page in order, and hidden setups between them.

    >>> [(block.language, block.code) for block in list_blocks('<!-- test: 20 | 1 -->\\n```python\\nrun(20)\\n```')]
    [('python', 'run(1)\\n')]
    """
    found, replaced, is_parsed = [], list[tuple[str, str]](), False
    for match in PARTS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["kind"] == "setup":
            found.append(Block("python", match["said"].removeprefix("python").strip() + "\n", line))
        elif match["kind"] == "test" and match["said"] == "parsed":
            is_parsed = True
        elif match["kind"] == "test":
            old, _, new = match["said"].partition(" | ")
            replaced.append((old, new))
        else:
            code, info = match["code"], match["info"]
            for old, new in replaced:
                if old not in code:
                    raise ValueError(f"line {line}: the block does not hold {old!r}, which a comment before it replaces")
                code = code.replace(old, new)
            title = re.search(r'title="([^"]+)"', info)
            found.append(Block(info.partition(" ")[0], code, line, title and title[1], is_parsed))
            replaced, is_parsed = [], False
    return found
