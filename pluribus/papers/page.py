"""The page papers/<paper>/README.md, made from the results: our numbers beside the paper's, figures, verdicts on claims."""

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

from ..core.files import write_file
from . import results
from .recipe import Json, Recipe
from .verdicts import OUTCOMES

MARKS = {
    "reproduced": "✓",
    "direction reproduced": "↗",
    "not reproduced": "✗",
    "not decided at this scale": "?",
    "not run at this scale": "–",
}


def write_page(out: Path, paper: str) -> None:
    """Write the page of a paper from the results that are recorded below `out`."""
    write_file(out / paper / "README.md", format_page(paper, results.read_paper_results(out, paper)))


def format_page(paper: str, found: dict[str, Json]) -> str:
    """Return the page of a paper as Markdown, from its results by id."""
    about = importlib.import_module(f"{__package__}.{paper}")
    parts = [f"# {about.TITLE}", about.CITATION, about.INTRODUCTION, format_summary(paper, found)]
    parts += [format_section(result) for result in found.values()]
    departures = dict.fromkeys(text for result in found.values() for text in result["departures"])
    measured = about.list_departures(found)
    if departures or measured:
        parts += ["## Departures, and what they do", "\n".join(f"- {text}" for text in [*departures, *measured])]
    learnt = about.list_findings(found)
    if learnt:
        parts += ["## What we learnt that the papers do not say", "\n".join(f"- {text}" for text in learnt)]
    return "\n\n".join(parts) + "\n"


def format_summary(paper: str, found: dict[str, Json]) -> str:
    """Return a table that counts the verdicts of every recipe by outcome."""
    from . import load_recipes

    lines = [
        "## Verdicts",
        "",
        "| artefact | scale | " + " | ".join(OUTCOMES) + " |",
        "| --- | --- |" + " ---: |" * len(OUTCOMES),
    ]
    for key, recipe in load_recipes().items():
        if recipe.paper_name != paper:
            continue
        result = found.get(key)
        if result is None:
            lines.append(f"| {key}: {recipe.title} | not run{describe_needs(recipe)} |" + " |" * len(OUTCOMES))
            continue
        counts = Counter(verdict["outcome"] for verdict in result["verdicts"])
        numbers = " | ".join(str(counts[outcome] or "") for outcome in OUTCOMES)
        lines.append(f"| [{key}](#{make_anchor(result)}): {recipe.title} | {result['scale']} | {numbers} |")
    return "\n".join(lines)


def describe_needs(recipe: Recipe) -> str:
    """Return what a recipe that was not run needs: data, or a larger machine."""
    scale = recipe.scales["cpu"]
    if not scale.cells:
        return ": " + "; ".join(f"{what}: {why}" for what, why in scale.not_run.items())
    return f"; needs {', '.join(scale.data)}" if scale.data else ""


def make_anchor(result: Json) -> str:
    """Return the anchor that GitHub gives to a result's heading."""
    kept = "".join(letter for letter in format_heading(result).lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def format_heading(result: Json) -> str:
    return f"{result['id']}: {result['title']}"


def format_section(result: Json) -> str:
    name = result["id"].partition("/")[2]
    parts = [f"## {format_heading(result)}", f"**{result['question']}** ({result['source']})", describe_run(result)]
    if result["rows"]:
        parts.append(format_table(result))
    if result["figure"]:
        parts.append(f"![{result['title']}](results/{name}.{result['scale']}.svg)")
    parts.append(format_verdicts(result["verdicts"]))
    parts += [f"Not run here: {what}: {why}." for what, why in result["untold"].items()]
    return "\n\n".join(part for part in parts if part)


def describe_run(result: Json) -> str:
    """Return one sentence about scale, command, seeds, duration and machine."""
    seeds = result["seeds"]
    listed = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}; " if seeds else ""
    cell = next(iter(result["cells"].values()), None)
    machine = ""
    if cell:
        about = cell["about"]
        machine = f"; torch {about['versions'].get('torch', '?')}, {about['machine']['cores']} cores"
    command = f"`pluribus reproduce {result['id']} --scale {result['scale']}`"
    earlier = (
        " Measured with these settings before the present ones and their rules were written." if result.get("earlier") else ""
    )
    commits = describe_commits(result)
    return f"{result['about']} {command}: {listed}{format_duration(result['seconds'])}{machine}{commits}.{earlier}"


def describe_commits(result: Json) -> str:
    """Return which commits the cells were measured with, and which ones their rules are of; "" where that is not recorded."""
    about = [cell["about"] for cell in result["cells"].values()]
    names = {key: list(dict.fromkeys(each[key] for each in about if key in each)) for key in ("commit", "rules_commit")}
    if not all(names.values()):
        return ""
    return f"; measured with commit {', '.join(names['commit'])}, rules of commit {', '.join(names['rules_commit'])}"


def format_duration(seconds: float) -> str:
    """Return seconds as people write them.

    >>> format_duration(4.2), format_duration(200)
    ('4 s', '3 min 20 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_table(result: Json) -> str:
    """Return our rows as a Markdown table, with the paper's numbers in brackets where it has them."""
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
        cells = [
            format_value(row.get(key)) + (f" ({format_value(paper[key])})" if paper.get(key) is not None else "")
            for key in numbers
        ]
        lines.append(format_row([*(str(part or "") for part in label), *cells]))
    for label, row in theirs.items():
        if label not in used:
            cells = [f"({format_value(row[key])})" if row.get(key) is not None else "" for key in numbers]
            lines.append(format_row([*(str(part or "") for part in label), *cells]))
    note = "\n\nIn brackets: the paper's." if result["paper"] else ""
    return "\n".join(lines) + note


def format_row(cells: list[str]) -> str:
    r"""Return one line of a table; a bar in a cell's text is escaped.

    >>> print(format_row(["|x|", "1"]))
    | \|x\| | 1 |
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def format_value(value: Any) -> str:
    """Return a value of a table as text.

    >>> format_value(99.4), format_value(3), format_value(1.234e-7), format_value(None), format_value(-602.6)
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


def format_verdicts(verdicts: list[Json]) -> str:
    """Return a table with a row for each verdict."""
    if not verdicts:
        return ""
    lines = ["| | claim | verdict | seen | rule |", "| --- | --- | --- | --- | --- |"]
    for each in verdicts:
        cells = [MARKS[each["outcome"]], each["claim"], each["outcome"], each["evidence"], each["rule"]]
        lines.append(format_row(cells))
    return "\n".join(lines)
