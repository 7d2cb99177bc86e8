"""The navigation: sections and their pages. A page that is not there is left out; one without a place ends the guide."""

from typing import Any

SECTIONS: dict[str, list[str]] = {
    "Start": ["tutorial.md", "choose.md", "examples/README.md"],
    "How to": [
        "how-to/your-model.md",
        "networks.md",
        "how-to/your-loop.md",
        "how-to/pretrained.md",
        "pretrained.md",
        "how-to/regression.md",
        "how-to/tables.md",
        "how-to/several-gpus.md",
        "how-to/export.md",
        "serving.md",
        "how-to/abstain.md",
        "how-to/add-a-method.md",
    ],
    "Methods": ["methods.md", "methods/*"],
    "Guide": [
        "training.md",
        "comparing.md",
        "your-network.md",
        "decisions.md",
        "several-processes.md",
        "exact.md",
        "inner.md",
        "mimo.md",
    ],
    "Evidence": [
        "results.md",
        "performance.md",
        "papers.md",
        "papers/variance/README.md",
        "papers/mimo/README.md",
        "papers/inner/README.md",
    ],
    "Reference": ["reference/*", "glossary.md"],
    "Project": ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"],
}
"""Paths in the site; `folder/*` stands for the pages of a folder that are not named elsewhere, sorted by name."""


def make_navigation(pages: list[str]) -> list[dict[str, Any]]:
    """The `nav` of mkdocs for the pages that are there.

    >>> make_navigation(["tutorial.md", "methods.md", "methods/b.md", "methods/a.md", "new.md"])[1:]
    [{'Start': ['tutorial.md']}, {'Methods': ['methods.md', 'methods/a.md', 'methods/b.md']}, {'Guide': ['new.md']}]
    """
    named = {path for paths in SECTIONS.values() for path in paths}
    placed: dict[str, list[str]] = {}
    for title, paths in SECTIONS.items():
        found: list[str] = []
        for path in paths:
            if path.endswith("/*"):
                found += sorted(page for page in pages if page.startswith(path[:-1]) and page not in named)
            elif path in pages:
                found.append(path)
        placed[title] = found
    known = {"index.md", *(page for found in placed.values() for page in found)}
    placed["Guide"] += sorted(page for page in pages if "/" not in page and page not in known)
    return [{"Home": "index.md"}, *({title: found} for title, found in placed.items() if found)]
