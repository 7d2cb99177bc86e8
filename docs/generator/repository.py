"""Files of the repository that pages link to: they become part of the site, and the links lead to them there.

Pages are read on the site and in the repository alike, so they link to files by their place in the repository.
"""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def list_linked_files(pages: dict[str, str]) -> list[str]:
    """Every file of the repository outside docs/ that these pages, or pages that they lead to, link to.

    `pages` holds the text of each page by its path in the repository.
    """
    texts, found = dict(pages), set[str]()
    while texts:
        path, text = texts.popitem()
        for match in LINK.finditer(FENCE.sub("", text)):
            target = resolve(path, match[2])
            if target and not target.startswith("docs/") and target not in found and (ROOT / target).is_file():
                if target == "README.md":  # the landing page stands for it
                    continue
                found.add(target)
                if target.endswith(".md"):
                    texts[target] = (ROOT / target).read_text(encoding="utf-8")
    return sorted(found)


def resolve(page: str, link: str) -> str | None:
    """The path in the repository that a link of a page leads to; None of a link that leaves it.

    >>> resolve("docs/performance.md", "../benchmarks/results/peers.md")
    'benchmarks/results/peers.md'
    >>> resolve("docs/mimo.md", "https://example.org") is None
    True
    """
    if re.match(r"[a-z]+:|/", link):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def name_in_site(path: str) -> str:
    """Where a file of the repository stands in the site: pages of docs/ at its top, everything else at its own path."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def rewrite_links(text: str, page: str) -> str:
    """The text of a page whose links lead to places in the site; `page` is its path in the repository.

    >>> rewrite_links("[costs](../benchmarks/results/peers.md)", "docs/performance.md")
    '[costs](benchmarks/results/peers.md)'
    """
    folder = posixpath.dirname(name_in_site(page)) or "."

    def rewrite(match: re.Match[str]) -> str:
        target = resolve(page, match[2])
        if target is None or not (ROOT / target).is_file():
            return match[0]
        return f"{match[1]}{posixpath.relpath(name_in_site(target), folder)}{match[3] or ''}{match[4]}"

    pieces = re.split(f"({FENCE.pattern})", text, flags=FENCE.flags)
    return "".join(piece if place % 2 else LINK.sub(rewrite, piece) for place, piece in enumerate(pieces))
