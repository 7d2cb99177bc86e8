"""The parts that the page and the notebook fragment share: the line under the title, the table, and how to read it."""

import re
from typing import Any

from ..core.files import NOT_FINITE
from .palette import PATHS, method_style
from .table_columns import COSTS, EQUIVALENTS, SHARE, STORED, Column, is_regression, mark_column
from .tuning_table import describe_chosen
from .values import format_count, format_estimate, format_spread


def describe_comparison(results: dict[str, Any]) -> str:
    """Return one line with the data, network, budget, seeds and rows of a comparison."""
    data = results.get("data") or {}
    seeds = results.get("seeds") or []
    outputs = "regression" if is_regression(results) else f"{len(data['classes'])} classes" if data.get("classes") else ""
    sizes = [f"{data[part]:,} {word} rows" for part, word in (("train", "training"), ("test", "test")) if data.get(part)]
    parts = [
        f"{format_count(len(results['methods']), 'method')} on {data.get('name') or 'the data'}",
        *([f"{results['model']} as the network"] if results.get("model") else []),
        *([outputs] if outputs else []),
        *([" and ".join(sizes)] if sizes else []),
        *([f"held equal: {results['budget']['text']}"] if (results.get("budget") or {}).get("text") else []),
        *([format_count(len(seeds), "seed") + f" ({', '.join(map(str, seeds))})"] if seeds else []),
    ]
    return " · ".join(parts)


def make_heading(column: Column, place: int, shown: list[Column]) -> dict[str, Any]:
    """Return what the template needs for the heading of a column; `first` is the order of the first click."""
    first = "descending" if column.better == "high" else "ascending"
    return {
        "title": column.title,
        "unit": column.unit,
        "about": column.about,
        "first": first,
        "group": _choose_group(place, shown),
    }


def _choose_group(place: int, shown: list[Column]) -> str:
    """Return "new" for a column that a vertical rule precedes: where scores end and costs begin, and where costs end."""
    costs = [column in (EQUIVALENTS, SHARE, STORED, *COSTS) for column in shown]
    return "new" if place and costs[place] != costs[place - 1] else ""


def make_rows(results: dict[str, Any], shown: list[Column]) -> list[dict[str, Any]]:
    """Return what the template needs for each row: the method, its symbol, and a cell for each column."""
    marked = [mark_column(column, results["methods"]) for column in shown]
    rows, chosen = [], describe_chosen(results)
    for index, method in enumerate(results["methods"]):
        look, members = method_style(index), method.get("members")
        rows.append(
            {
                "name": method["name"],
                "about": "; ".join(filter(None, [chosen.get(method["name"]), method.get("equivalence")])),
                "parts": re.findall(r"[^:,]+[:,]?|[:,]", str(method["name"])),
                "look": look._asdict() | {"path": PATHS[look.shape]},
                "members": format_count(members, "member") if members else "",
                "cells": [
                    _make_cell(column, method, marked[place][index], _choose_group(place, shown))
                    for place, column in enumerate(shown)
                ],
            }
        )
    return rows


def _make_cell(column: Column, method: dict[str, Any], mark: str, group: str) -> dict[str, Any]:
    v = column.read(method)
    if v is None:
        text = NOT_FINITE if column.is_not_finite(method) else "–"
        return {"text": text, "spread": "", "value": None, "mark": "", "group": group}
    text = format_estimate(v, column.kind, unit=False)
    return {"text": text, "spread": format_spread(v, column.kind), "value": repr(v.value), "mark": mark, "group": group}


def explain_table(results: dict[str, Any], shown: list[Column]) -> str:
    """Return the sentences that explain the marks and the small numbers of the table."""
    several = len(results.get("seeds") or []) > 1
    text = ""
    if len(results["methods"]) > 1:
        text += "★ is the best mean of a column, ≈ a mean inside the interval (or the spread over seeds) of the best. "
        if any(column.key == "ece" for column in shown):
            text += "ECE is marked among the more accurate half of the methods, as one that guesses is well calibrated, too. "
    if several:
        text += "The small numbers are one standard deviation over seeds, or the 95 % interval. "
    else:
        scores = [
            v for column in shown if column.path[0] == "scores" for method in results["methods"] if (v := column.read(method))
        ]
        drawn = any(v.low is not None for v in scores)
        text += (
            "One seed: the small numbers are a 95 % interval over rows alone (of the latency, over repeats). "
            if drawn
            else "One seed: no spread. "
        )
    if any(column in COSTS for column in shown):
        text += "Costs are those of the deployed form, as ratios to one network. "
    if EQUIVALENTS in shown:
        text += "Equivalents are how many independent networks have as low a calibrated NLL; nothing is extrapolated, "
        text += "so that they are from 1 to the size of the deep ensemble, or said to be beyond."
    return text.strip()
