"""The results as Markdown: a page of their own, and a section of the documentation."""

import os
from pathlib import Path
from typing import Any

from ..core.errors import FileError
from ..core.files import write_file
from .cases import METHODS, TABLED
from .networks import NETWORKS
from .work import TITLES

Json = dict[str, Any]
BEGIN, END = "<!-- cost table: make bench -->", "<!-- end -->"
NOTHING = "Not measured yet: `make bench`."


def page(results: Json, figures: str = ".") -> str:
    return f"# What methods cost\n\n{body(results, figures)}\n"


def section(results: Json, figures: str) -> str:
    """What stands between the two marks of a document, with them. `figures` is the way to their folder."""
    return f"{BEGIN}\n\n{body(results, figures)}\n\n{END}"


def body(results: Json, figures: str) -> str:
    parts = [targets(results["targets"]), table(results["table"], figures), growth(results["growth"], figures)]
    told = [part for part in parts if part]
    return "\n\n".join([*told, runs(results["runs"])]) if told else NOTHING


# --- in a document ------------------------------------------------------------------------------------------------------


def marked(document: Path) -> tuple[str, str]:
    """What stands before and after the section."""
    try:
        text = document.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise FileError(f"cannot read the document {document}: {reason}") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise FileError(f"{document} has no place for the cost table: put the lines {BEGIN} and {END} where it should stand")
    return before, after


def document(path: Path, results: Json, folder: Path) -> None:
    """Write the section anew; all else stays."""
    before, after = marked(path)
    figures = Path(os.path.relpath(folder, path.parent)).as_posix()
    write_file(path, before + section(results, figures) + after)


# --- its parts ----------------------------------------------------------------------------------------------------------


def targets(rows: list[Json]) -> str:
    if not rows:
        return ""
    lines = ["## Targets", "", *_head("work", "ratio", "middle half", "target", "")]
    for row in rows:
        what = f"{NETWORKS[row['network']].title}, {TITLES[row['work']]}: {row['name']}"
        half = "counted" if row["time"] is None else middle(row["time"])
        most = "" if row["most"] is None else f"≤ {ratio(row['most'])}"
        lines.append(_row(what, ratio(row["value"]), half, most, {True: "met", False: "**missed**", None: ""}[row["met"]]))
    return "\n".join(lines)


def table(rows: list[Json], figures: str) -> str:
    if not rows:
        return ""
    lines = [
        *("## Every method", "", "M = 4 (MIMO 3), m = 4, K = 20; the middle half of the repeats in brackets."),
        *("", f"![Time of every method on every network]({figures}/cost.svg)"),
    ]
    found = {(row["network"], row["method"], row["work"]): row for row in rows}
    for network in dict.fromkeys(row["network"] for row in rows):
        titles = [f"{work}, {what}" for work in TABLED for what in ("time", "memory", "FLOPs")]
        lines += ["", f"### {NETWORKS[network].title}", "", *_head("method", *titles)]
        for method in METHODS:
            cells = [cell for work in TABLED for cell in _cost(found.get((network, method, work)))]
            if any(cells):
                lines.append(_row(method, *cells))
    return "\n".join(lines)


def _cost(row: Json | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    return [f"{ratio(row['time']['median'])} ({middle(row['time'])})", ratio(row["memory"]), ratio(row["flops"])]


def growth(rows: list[Json], figures: str) -> str:
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
        lines += _head("method", *(f"{axis} = {count}" for count in counts), "line", "memory at each", "FLOPs")
        for row in own:
            times = [ratio(point["time"]["median"]) for point in row["points"]]
            # Memory is no line where answers come in chunks, so all of it is shown.
            memory = ", ".join(ratio(point["memory"])[:-1] for point in row["points"])
            flops = " → ".join(ratio(row["points"][place]["flops"]) for place in (0, -1))
            lines.append(_row(row["method"], *times, straight(row["lines"]["time"], axis), memory, flops))
    return "\n".join(lines)


def straight(line: Json, axis: str) -> str:
    """
    >>> straight({"slope": 0.98, "intercept": -0.03, "off": 0.1, "at": 8}, "M")
    '0.980 M − 0.03, off by 0.10 at M = 8'
    """
    sign = "−" if line["intercept"] < 0 else "+"
    slope, intercept = f"{line['slope']:.3f}".replace("-", "−"), f"{abs(line['intercept']):.2f}"
    return f"{slope} {axis} {sign} {intercept}, off by {line['off']:.2f} at {axis} = {line['at']}"


def runs(found: Json) -> str:
    lines = ["## Where and when", ""]
    for when, run in found.items():
        machine, settings, versions = run["machine"], run["settings"], run.get("versions", {})
        told = f"{settings['repeats']} repeats, batches of {settings['batch']}, {settings['threads']} threads"
        hardware = f"{machine['cpu']}, {machine.get('cores', '?')} cores"
        software = ", ".join(f"{name} {versions[name]}" for name in ("pluribus", "torch", "python") if name in versions)
        lines.append(f"- {when.replace('T', ', ')}: {told}; {hardware}; {software}")
    return "\n".join(lines)


# --- its cells ----------------------------------------------------------------------------------------------------------


def ratio(value: float | None) -> str:
    """
    >>> ratio(1.046), ratio(22.31), ratio(187.6), ratio(None)
    ('1.05×', '22.3×', '188×', '')
    """
    if value is None:
        return ""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}×"


def middle(time: Json) -> str:
    """Between which half of the repeats lie."""
    return f"{ratio(time['low'])[:-1]} to {ratio(time['high'])[:-1]}"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), _row("---", *("---:" for _ in cells[1:]))]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
