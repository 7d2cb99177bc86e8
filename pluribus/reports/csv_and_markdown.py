"""The results as CSV (everything that is one number) and as Markdown (what the page's table has)."""

import csv
import io
from typing import Any

from ..core.files import NOT_FINITE
from .table_columns import Column, mark_column, select_columns
from .tuning_table import explain_tuning, make_tuning_table
from .values import format_estimate, format_spread, to_finite

PLAIN = ("name", "spec", "members", "epochs")
GROUPS = (
    ("scores", ""),
    ("member_scores", "member_"),
    ("tempered", "tempered_"),
    ("gain", "gain"),
    ("share", "share"),
    ("equivalents", "equivalents"),
    ("diversity", "diversity_"),
    ("shift", "shift_"),
    ("ood", "ood_"),
    ("attack", "attack_"),
    ("cost", "cost_"),
    ("seconds", "seconds"),
)


def format_csv(results: dict[str, Any]) -> str:
    """Return the results as CSV with one row for each method.

    A number has four columns (its name, then _std, _low and _high), an interval three, and equivalents also _below and _above.
    Missing values are empty, and so are those that are not finite; a column `not_finite` then has the number of rows without a
    finite answer.
    """
    methods = results["methods"]
    flat = [
        {key: found for place, prefix in GROUPS for key, found in _flatten(method.get(place), prefix)} for method in methods
    ]
    # Methods differ in their scores. Columns are collected group by group, as the order of first appearance would mix them.
    head: dict[str, None] = {}
    for place, prefix in GROUPS:
        for method in methods:
            head.update(dict.fromkeys(key for key, _ in _flatten(method.get(place), prefix)))
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    plain = [*PLAIN, *(["not_finite"] if any(method.get("not_finite") for method in methods) else [])]
    table.writerow([*plain, *head])
    for method, cells in zip(methods, flat, strict=True):
        table.writerow([_format_cell(method.get(key)) for key in plain] + [_format_cell(cells.get(key)) for key in head])
    return file.getvalue()


def _flatten(x: Any, key: str) -> list[tuple[str, Any]]:
    """Return the numbers and words inside a nested value, with the joined keys that lead to them. Lists are left out."""
    if not isinstance(x, dict):
        return [] if isinstance(x, list) or x is None else [(key, x)]
    parts = {"mean": ("std", "low", "high"), "value": ("low", "high")}
    for middle, rest in parts.items():
        if middle in x:
            rest = (*rest, *(flag for flag in ("below", "above") if flag in x))
            return [(key, x[middle]), *((f"{key}_{part}", x.get(part)) for part in rest)]
    return [
        pair
        for name, entry in x.items()
        for pair in _flatten(entry, key + ("" if not key or key.endswith("_") else "_") + str(name))
    ]


def _format_cell(x: Any) -> Any:
    if isinstance(x, bool):
        return int(x)
    number = to_finite(x)
    if number is not None:
        return int(number) if isinstance(x, int) else repr(number)
    return x if isinstance(x, str) else ""


def format_markdown(results: dict[str, Any]) -> str:
    """Return the recommendation, the table and the command as Markdown, for a README or an issue."""
    shown = select_columns(results)
    lines = [f"# {_escape(results.get('title') or 'Comparison')}", ""]
    for entry in results.get("recommendation") or []:
        limit, choice = entry.get("limit") or "recommended", entry.get("method") or "one plain network"
        lines.append(f"- {_escape(limit)}: **{_escape(choice)}**. {_escape(entry.get('text') or '')}")
    lines += [""] if results.get("recommendation") else []
    lines += _format_row(["method", *(_format_heading(column) for column in shown)])
    lines += _format_row(["---", *("---:" for _ in shown)])
    marked = {column.key: mark_column(column, results["methods"]) for column in shown}
    for index, method in enumerate(results["methods"]):
        cells = [_format_cell_with_spread(column, method, marked[column.key][index] == "best") for column in shown]
        lines += _format_row([_escape(str(method["name"])), *cells])
    lines += [
        "",
        "Mean ± standard deviation over seeds, or a 95 % interval; the best mean of a column is bold. "
        + _describe_budget(results),
    ]
    lines += _format_tuning(results)
    lines += [f"\n> {_escape(note)}" for note in results.get("notes") or []]
    if results.get("command"):
        lines += ["", "```sh", str(results["command"]), "```"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _format_tuning(results: dict[str, Any]) -> list[str]:
    table = make_tuning_table(results)
    if table is None:
        return []
    rows = [table["head"], ["---"] * len(table["head"]), *table["rows"]]
    return [
        "",
        _escape(explain_tuning(results)),
        "",
        *(line for row in rows for line in _format_row([_escape(c) for c in row])),
    ]


def _format_heading(column: Column) -> str:
    return _escape(column.title + (f", {column.unit}" if column.unit else ""))


def _format_cell_with_spread(column: Column, method: dict[str, Any], best: bool) -> str:
    v = column.read(method)
    if v is None:
        return NOT_FINITE if column.is_not_finite(method) else ""
    text = format_estimate(v, column.kind, unit=False)
    beside = format_spread(v, column.kind)
    return (f"**{text}**" if best else text) + (f" {beside if beside[0] == '±' else f'({beside})'}" if beside else "")


def _describe_budget(results: dict[str, Any]) -> str:
    text = (results.get("budget") or {}).get("text")
    seeds = results.get("seeds") or []
    return (f"Held equal: {_escape(text)}. " if text else "") + (f"Seeds: {', '.join(map(str, seeds))}." if seeds else "")


def _format_row(cells: list[str]) -> list[str]:
    return ["| " + " | ".join(cells) + " |"]


def _escape(text: str) -> str:
    """Escape Markdown in names, which come from configurations and folders."""
    text = " ".join(str(text).split())
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, "\\" + sign)
    return text
