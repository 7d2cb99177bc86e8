"""docs/networks.md: the table of what works, made of the recorded outcomes."""

import json
from pathlib import Path
from typing import Any

from .trial import METHODS, STEPS

ROOT = Path(__file__).parent.parent.parent
OUTCOMES, PAGE = Path(__file__).parent / "outcomes.json", ROOT / "docs" / "networks.md"
BEGIN, END = "<!-- recorded results: python -m tests.matrix.record -->", "<!-- end -->"


def read_outcomes() -> dict[str, Any]:
    return json.loads(OUTCOMES.read_text())


def format_section(recorded: dict[str, Any]) -> str:
    """The table with its reasons, between the marks."""
    reasons: dict[str, int] = {}
    lines = ["| network | " + " | ".join(METHODS) + " |", "|---" * (len(METHODS) + 1) + "|"]
    for name, network in recorded["networks"].items():
        cells = [format_cell(network["outcomes"].get(method), reasons) for method in METHODS]
        lines.append(f"| {name}: {network['about']} | " + " | ".join(cells) + " |")
    versions = ", ".join(f"{name} {version}" for name, version in recorded["versions"].items())
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    exported = sum("export" in outcome for each in recorded["networks"].values() for outcome in each["outcomes"].values())
    tried = f"With {versions}. Exports (.pt2) were tried for {exported} of the pairs."
    return "\n".join([BEGIN, "", *lines, "", tried, "", *notes, "", END])


def format_cell(outcome: dict[str, str] | None, reasons: dict[str, int]) -> str:
    """Write "yes" if it is converted and "no" if not, with the numbers of the reasons why a step did not work."""
    if outcome is None:
        return "not tried"
    failed = [f"{step}: {outcome[step]}" for step in STEPS if outcome.get(step)]
    numbers = [reasons.setdefault(shorten(reason), len(reasons) + 1) for reason in failed]
    shown = f" ({', '.join(map(str, numbers))})" if numbers else ""
    return ("no" if outcome.get("convert") else "yes") + shown


def shorten(reason: str, most: int = 300) -> str:
    """The beginning of a reason, safe in Markdown."""
    text = reason.replace("|", "/").replace("<", "‹").replace(">", "›")
    return text if len(text) <= most else text[: text.rfind(" ", 0, most)] + " …"


def write_page(recorded: dict[str, Any]) -> None:
    """Put the section in its place in the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + format_section(recorded) + rest.partition(END)[2])
