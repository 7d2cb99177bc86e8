"""papers/<paper>/README.md: ours beside the paper's, a figure where there is one, a verdict on every claim. Made from "
"JSON alone."""

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

from ..core.files import write_file
from . import results
from .recipe import Json
from .verdicts import OUTCOMES

MARKS = {"reproduced": "✓", "direction reproduced": "↗", "not reproduced": "✗", "not run at this scale": "–"}


def write_page(out: Path, paper: str) -> None:
    write_file(out / paper / "README.md", page(paper, results.of_paper(out, paper)))


def page(paper: str, found: dict[str, Json]) -> str:
    """The whole page of a paper, of its results by id."""
    about = importlib.import_module(f"{__package__}.{paper}")
    parts = [f"# {about.TITLE}", about.CITATION, about.INTRODUCTION, summary(paper, found)]
    parts += [section(result) for result in found.values()]
    departures = dict.fromkeys(text for result in found.values() for text in result["departures"])
    measured = about.departures(found)
    if departures or measured:
        parts += ["## Departures, and what they do", "\n".join(f"- {text}" for text in [*departures, *measured])]
    learnt = about.learnt(found)
    if learnt:
        parts += ["## What we learnt that the papers do not say", "\n".join(f"- {text}" for text in learnt)]
    return "\n\n".join(parts) + "\n"


def summary(paper: str, found: dict[str, Json]) -> str:
    from . import recipes

    lines = [
        "## Verdicts",
        "",
        "| artefact | scale | " + " | ".join(OUTCOMES) + " |",
        "| --- | --- |" + " ---: |" * len(OUTCOMES),
    ]
    for key, recipe in recipes().items():
        if recipe.of != paper:
            continue
        result = found.get(key)
        if result is None:
            lines.append(f"| {key}: {recipe.title} | not run |" + " |" * len(OUTCOMES))
            continue
        counts = Counter(verdict["outcome"] for verdict in result["verdicts"])
        numbers = " | ".join(str(counts[outcome] or "") for outcome in OUTCOMES)
        lines.append(f"| [{key}](#{anchor(result)}): {recipe.title} | {result['scale']} | {numbers} |")
    return "\n".join(lines)


def anchor(result: Json) -> str:
    """As GitHub makes it of a heading."""
    kept = "".join(letter for letter in heading(result).lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def heading(result: Json) -> str:
    return f"{result['id']}: {result['title']}"


def section(result: Json) -> str:
    name = result["id"].partition("/")[2]
    parts = [f"## {heading(result)}", f"**{result['question']}** ({result['source']})", run(result)]
    if result["rows"]:
        parts.append(table(result))
    if result["figure"]:
        parts.append(f"![{result['title']}](results/{name}.{result['scale']}.svg)")
    parts.append(claims(result["verdicts"]))
    parts += [f"Not run here: {what}: {why}." for what, why in result["untold"].items()]
    return "\n\n".join(part for part in parts if part)


def run(result: Json) -> str:
    seeds = result["seeds"]
    told = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}; " if seeds else ""
    cell = next(iter(result["cells"].values()), None)
    machine = ""
    if cell:
        about = cell["about"]
        machine = f"; torch {about['versions'].get('torch', '?')}, {about['machine']['cores']} cores"
    command = f"`pluribus reproduce {result['id']} --scale {result['scale']}`"
    return f"{result['about']} {command}: {told}{duration(result['seconds'])}{machine}."


def duration(seconds: float) -> str:
    """
    >>> duration(4.2), duration(200)
    ('4 s', '3 min 20 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def table(result: Json) -> str:
    """Ours, with the paper's in brackets where it has the number."""
    columns, rows = result["columns"], result["rows"]
    words = [key for key in columns if any(isinstance(row.get(key), str) for row in rows)]
    theirs = {tuple(row.get(key) for key in words): row for row in result["paper"]}
    numbers = [key for key in columns if key not in words]
    lines = ["| " + " | ".join(columns[key] for key in [*words, *numbers]) + " |"]
    lines.append("|" + " --- |" * len(words) + " ---: |" * len(numbers))
    used = set()
    for row in rows:
        label = tuple(row.get(key) for key in words)
        used.add(label)
        paper = theirs.get(label, {})
        cells = [shown(row.get(key)) + (f" ({shown(paper[key])})" if paper.get(key) is not None else "") for key in numbers]
        lines.append(row_of([*(str(part or "") for part in label), *cells]))
    for label, row in theirs.items():
        if label not in used:
            cells = [f"({shown(row[key])})" if row.get(key) is not None else "" for key in numbers]
            lines.append(row_of([*(str(part or "") for part in label), *cells]))
    note = "\n\nIn brackets: the paper's." if result["paper"] else ""
    return "\n".join(lines) + note


def row_of(cells: list[str]) -> str:
    r"""A line of a table; a bar in a text is none between cells.

    >>> print(row_of(["|x|", "1"]))
    | \|x\| | 1 |
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def shown(value: Any) -> str:
    """
    >>> shown(99.4), shown(3), shown(1.234e-7), shown(None), shown(-602.6)
    ('99.40', '3', '1.23e-07', '', '-602.60')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        small = value != 0 and not 1e-2 <= abs(value) < 1e5
        return f"{value:.3g}" if small else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def claims(verdicts: list[Json]) -> str:
    if not verdicts:
        return ""
    lines = ["| | claim | verdict | seen | rule |", "| --- | --- | --- | --- | --- |"]
    for each in verdicts:
        cells = [MARKS[each["outcome"]], each["claim"], each["outcome"], each["evidence"], each["rule"]]
        lines.append(row_of(cells))
    return "\n".join(lines)
