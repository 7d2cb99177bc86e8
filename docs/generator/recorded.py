"""What the recorded comparisons say of a method, as rows of a table."""

import json
from functools import cache
from typing import Any

from repository import ROOT

from pluribus.reports.table_columns import COSTS, EQUIVALENTS, SHARE, Column
from pluribus.reports.values import format_estimate, format_spread

LATENCY, FLOPS = COSTS[0], COSTS[1]


@cache
def read_comparisons() -> dict[str, dict[str, Any]]:
    """Results of the recorded comparisons that know what methods are worth, by name."""
    places = sorted((ROOT / "results").glob("*/results.json"))
    found = {place.parent.name: json.loads(place.read_text(encoding="utf-8")) for place in places}
    return {
        name: results
        for name, results in found.items()
        if results.get("decided_by") == "calibrated_nll" and any(method["equivalents"] for method in results["methods"])
    }


def describe_data(results: dict[str, Any]) -> str:
    """Data, network, rows and recipe of a comparison in a few words."""
    recipe = results["settings"].get("recipe")
    return f"{results['title']}, {results['data']['train']:,} rows" + (f", {recipe}" if recipe else "")


def list_findings(name: str) -> list[str]:
    """A row for every recorded comparison and variant of the method, students among them, with links from docs/methods/."""
    return [
        f"| [{comparison}](../../results/{comparison}/results.md) | "
        + " | ".join([f"{results['data']['train']:,}", format_name(method), *format_worth(method)])
        + " |"
        for comparison, results in read_comparisons().items()
        for method in results["methods"]
        if method["name"].partition(" ")[0].partition(":")[0] == name and method.get("equivalents")
    ]


def format_name(method: dict[str, Any]) -> str:
    """The options that were chosen, and of which ensemble it is a student."""
    teacher = method["name"].partition(" ← ")[2]
    return f"`{method['spec']}`" + (f", student of {teacher}" if teacher else "")


def format_worth(method: dict[str, Any]) -> list[str]:
    """Cells with what a method is worth, its share of the gain, and its latency, each with its interval."""
    return [format_cell(method, column) for column in (EQUIVALENTS, SHARE, LATENCY)]


def format_cell(method: dict[str, Any], column: Column) -> str:
    value = column.read(method)
    if value is None:
        return ""
    beside = format_spread(value, column.kind)
    text = format_estimate(value, column.kind, unit=False) + (f" ({beside})" if beside else "")
    return text.replace("<", "&lt;").replace(">", "&gt;")
