"""The parts that the page and the notebook fragment share: the line under the title, the table, and how to read it."""

import re
from typing import Any

from .columns import COSTS, SHARE, Column, is_regression, mark_best
from .palette import PATHS, method_style
from .values import Value, format_count, format_spread, format_value


def describe_comparison(results: dict[str, Any]) -> str:
    """One line: data, network, budget, seeds, rows."""
    data = results.get("data") or {}
    seeds = results.get("seeds") or []
    outputs = "regression" if is_regression(results) else f"{len(data['classes'])} classes" if data.get("classes") else ""
    sizes = [f"{data[part]:,} {word} rows" for part, word in (("train", "training"), ("test", "test")) if data.get(part)]
    told = [
        f"{format_count(len(results['methods']), 'method')} on {data.get('name') or 'the data'}",
        *([f"{results['model']} as the network"] if results.get("model") else []),
        *([outputs] if outputs else []),
        *([" and ".join(sizes)] if sizes else []),
        *([f"held equal: {results['budget']['text']}"] if (results.get("budget") or {}).get("text") else []),
        *([format_count(len(seeds), "seed") + f" ({', '.join(map(str, seeds))})"] if seeds else []),
    ]
    return " · ".join(told)


def make_heading(column: Column, place: int, shown: list[Column]) -> dict[str, Any]:
    first = "descending" if column.better == "high" else "ascending"
    return {"title": column.title, "unit": column.unit, "about": column.about, "first": first, "group": _group(place, shown)}


def _group(place: int, shown: list[Column]) -> str:
    """A rule stands where scores end and costs begin, and where those end."""
    costs = [column.key in {SHARE.key, *(cost.key for cost in COSTS)} for column in shown]
    return "new" if place and costs[place] != costs[place - 1] else ""


def make_rows(results: dict[str, Any], shown: list[Column]) -> list[dict[str, Any]]:
    marked = [mark_best(column, [column.of(method) for method in results["methods"]]) for column in shown]
    rows = []
    for index, method in enumerate(results["methods"]):
        look, members = method_style(index), method.get("members")
        rows.append(
            {
                "name": method["name"],
                "parts": re.findall(r"[^:,]+[:,]?|[:,]", str(method["name"])),
                "look": look._asdict() | {"path": PATHS[look.shape]},
                "members": format_count(members, "member") if members else "",
                "cells": [
                    _cell(column, column.of(method), marked[place][index], _group(place, shown))
                    for place, column in enumerate(shown)
                ],
            }
        )
    return rows


def _cell(column: Column, v: Value | None, mark: str, group: str) -> dict[str, Any]:
    if v is None:
        return {"text": "–", "spread": "", "value": None, "mark": "", "group": group}
    text = format_value(v.value, column.kind, unit=False)
    return {"text": text, "spread": format_spread(v, column.kind), "value": repr(v.value), "mark": mark, "group": group}


def explain_table(results: dict[str, Any], shown: list[Column]) -> str:
    several = len(results.get("seeds") or []) > 1
    text = ""
    if len(results["methods"]) > 1:
        text += "★ is the best mean of a column, ≈ a method whose interval (or spread over seeds) overlaps that of the best: "
        text += "the table does not tell them apart. "
    if several:
        text += "Small beside a mean: ± one standard deviation over seeds, or the 95 % interval. "
    else:
        scores = [
            v for column in shown if column.path[0] == "scores" for method in results["methods"] if (v := column.of(method))
        ]
        drawn = any(v.low is not None for v in scores)
        text += (
            "One seed: what stands small is a 95 % interval over rows alone (of the latency, over repeats). "
            if drawn
            else "One seed: no spread. "
        )
    if any(column in COSTS for column in shown):
        text += "Costs are of the deployed form, as ratios to one network."
    return text.strip()
