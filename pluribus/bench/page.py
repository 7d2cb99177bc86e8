"""The results as Markdown: a page of their own, and a section of a document."""

import os
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.files import write_file
from ..core.spec import list_methods
from .method_sizes import describe_sizes
from .networks import NETWORKS
from .table import TABLE_WORKLOADS
from .targets import get_verdict
from .workloads import TITLES

Json = dict[str, Any]
BEGIN, END = "<!-- cost table: make bench -->", "<!-- end -->"
VERDICTS = {"met": "met", "within noise": "within noise", "missed": "**missed**", "": ""}
NOTHING = "Not measured yet: `make bench`."


def format_page(results: Json, figures: str = ".") -> str:
    """Format the page; `figures` is the path to the folder of the figures."""
    return f"# What methods cost\n\n{format_body(results, figures)}\n"


def format_section(results: Json, figures: str) -> str:
    """Format the section of a document, with the marks before and after it."""
    return f"{BEGIN}\n\n{format_body(results, figures)}\n\n{END}"


def format_body(results: Json, figures: str) -> str:
    """Format the parts that have rows, and the runs that they come from."""
    parts = [
        format_targets(results["targets"]),
        format_table(results["table"], figures),
        format_growth(results["growth"], figures),
    ]
    filled = [part for part in parts if part]
    return "\n\n".join([*filled, format_runs(results["runs"])]) if filled else NOTHING


# --- in a document -----------------------------------------------------------------------------------------------------


def split_document(document: Path) -> tuple[str, str]:
    """Return the text before and after the section; raises FileError where the document has no place for it."""
    try:
        text = document.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise FileError(f"cannot read the document {document}: {reason}") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise FileError(f"{document} has no place for the cost table: put the lines {BEGIN} and {END} where it should stand")
    return before, after


def update_document(path: Path, results: Json, folder: Path) -> None:
    """Replace the section of a document by one with these results; the rest of the document stays as it is."""
    before, after = split_document(path)
    figures = Path(os.path.relpath(folder, path.parent)).as_posix()
    write_file(path, before + format_section(results, figures) + after)


# --- parts -------------------------------------------------------------------------------------------------------------


def format_targets(rows: list[Json]) -> str:
    if not rows:
        return ""
    lines = ["## Targets", "", *_format_head("work", "ratio", "middle half", "target", "")]
    for row in rows:
        what = f"{NETWORKS[row['network']].title}, {TITLES[row['work']]}: {row['name']}"
        half = "counted" if row["time"] is None else format_middle_half(row["time"])
        most = "" if row["most"] is None else f"≤ {format_ratio(row['most'])}"
        lines.append(_format_row(what, format_ratio(row["value"]), half, most, VERDICTS[get_verdict(row)]))
    return "\n".join(lines)


def format_table(rows: list[Json], figures: str) -> str:
    if not rows:
        return ""
    methods = list_methods({row["method"] for row in rows})
    lines = [
        *("## Every method", "", f"{describe_sizes(methods)}; the middle half of the repeats in brackets."),
        *("", f"![Time of every method on every network]({figures}/cost.svg)"),
    ]
    found = {(row["network"], row["method"], row["work"]): row for row in rows}
    for network in dict.fromkeys(row["network"] for row in rows):
        titles = [f"{work}, {what}" for work in TABLE_WORKLOADS for what in ("time", "memory", "FLOPs")]
        lines += ["", f"### {NETWORKS[network].title}", "", *_format_head("method", *titles)]
        for method in methods:
            cells = [cell for work in TABLE_WORKLOADS for cell in _format_cost(found.get((network, method, work)))]
            if any(cells):
                lines.append(_format_row(method, *cells))
    return "\n".join(lines)


def _format_cost(row: Json | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    return [
        f"{format_ratio(row['time']['median'])} ({format_middle_half(row['time'])})",
        format_ratio(row["memory"]),
        format_ratio(row["flops"]),
    ]


def format_growth(rows: list[Json], figures: str) -> str:
    if not rows:
        return ""
    lines = [
        *("## Growth", "", "Time as a straight line through the medians, and how far the farthest of them is from it."),
        *("", f"![Time against M and K]({figures}/growth.svg)"),
    ]
    for network, axis, work in dict.fromkeys((row["network"], row["axis"], row["work"]) for row in rows):
        own = [row for row in rows if (row["network"], row["axis"], row["work"]) == (network, axis, work)]
        counts = [str(point["at"]) for point in own[0]["points"]]
        lines += ["", f"### {NETWORKS[network].title}, {work}, with {axis}", ""]
        lines += _format_head("method", *(f"{axis} = {count}" for count in counts), "line", "memory at each", "FLOPs")
        for row in own:
            times = [format_ratio(point["time"]["median"]) for point in row["points"]]
            # Memory does not grow as a line where `predict` runs in chunks, so every value is shown.
            memory = ", ".join(format_ratio(point["memory"])[:-1] for point in row["points"])
            flops = " → ".join(format_ratio(row["points"][place]["flops"]) for place in (0, -1))
            lines.append(_format_row(row["method"], *times, format_line(row["lines"]["time"], axis), memory, flops))
    return "\n".join(lines)


def format_line(line: Json, axis: str) -> str:
    """Format a line and its largest deviation.

    >>> format_line({"slope": 0.98, "intercept": -0.03, "off": 0.1, "at": 8}, "M")
    '0.980 M − 0.03, off by 0.10 at M = 8'
    """
    sign = "−" if line["intercept"] < 0 else "+"
    slope, intercept = f"{line['slope']:.3f}".replace("-", "−"), f"{abs(line['intercept']):.2f}"
    return f"{slope} {axis} {sign} {intercept}, off by {line['off']:.2f} at {axis} = {line['at']}"


def format_runs(found: Json) -> str:
    lines = ["## Where and when", ""]
    for when, run in found.items():
        machine, settings, versions = run["machine"], run["settings"], run.get("versions", {})
        repeats = f"{settings['repeats']} repeats, batches of {settings['batch']}, {settings['threads']} threads"
        hardware = f"{machine['cpu']}, {machine.get('cores', '?')} cores"
        software = ", ".join(f"{name} {versions[name]}" for name in ("pluribus", "torch", "python") if name in versions)
        lines.append(f"- {when.replace('T', ', ')}: {repeats}; {hardware}; {software}")
    return "\n".join(lines)


# --- cells -------------------------------------------------------------------------------------------------------------


def format_ratio(value: float | None) -> str:
    """Format a ratio with three significant digits.

    >>> format_ratio(1.046), format_ratio(22.31), format_ratio(187.6), format_ratio(None)
    ('1.05×', '22.3×', '188×', '')
    """
    if value is None:
        return ""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}×"


def format_middle_half(time: Json) -> str:
    """Format the quartiles, between which half of the repeats lie."""
    return f"{format_ratio(time['low'])[:-1]} to {format_ratio(time['high'])[:-1]}"


def _format_head(*cells: str) -> list[str]:
    return [_format_row(*cells), _format_row("---", *("---:" for _ in cells[1:]))]


def _format_row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
