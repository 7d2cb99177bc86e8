"""Figures of a regression: how many targets the intervals hold, and predicted values against true ones."""

from typing import Any

from ..palette import method_style
from ..values import Value, format_count, format_value, read_series
from .traces import (
    Figure,
    Numbers,
    Panel,
    Trace,
    View,
    axis_title,
    describe_range,
    escape_text,
    make_guide,
    make_layout,
    make_line,
    make_marker,
)

SHOWN = (0.5, 0.8, 0.9, 0.95)
"""Levels in the table below the figure."""
Pairs = list[tuple[float, float]]


def make_interval_figure(results: dict[str, Any]) -> Figure | None:
    """Share of the targets inside intervals of every level."""
    data: list[Trace] = []
    rows, at_90 = [], []
    for index, method in enumerate(results["methods"]):
        pairs = read_pairs(method.get("interval_calibration"), "level", "held")
        if not pairs:
            continue
        x, y = [100 * level for level, _ in pairs], [100 * held for _, held in pairs]
        data.append(make_line(index, method["name"], x, y, "intervals of %{x:.0f} % hold %{y:.1f} %", size=5))
        known = {round(level, 6): held for level, held in pairs}
        rows.append([method["name"], *(format_value(known.get(level), "percent", unit=False) for level in SHOWN)])
        if 0.9 in known:
            at_90.append((method["name"], Value(known[0.9])))
    if not data:
        return None
    ends = {"range": [0, 101], "tickvals": [0, 25, 50, 75, 100]}
    shown = make_layout("targets inside, %", {**ends, "title": axis_title("level of the intervals, %")}, ends)
    alt = (
        f"Calibration curves of the intervals of {format_count(len(data), 'method')}: of the targets, intervals of 90 % hold "
        f"{describe_range(at_90, 'percent')}."
    )
    return Figure(
        "intervals",
        "Calibration of intervals",
        "The share of the targets inside the central interval of each level, of a Gaussian with the predicted mean and "
        "variance. On the diagonal intervals hold what they promise; below it they are too narrow, above it too wide.",
        [Panel([View(alt, [make_guide([0, 100], [0, 100]), *data], shown)])],
        [Numbers(["method", *(f"{100 * level:.0f} %" for level in SHOWN)], rows, "targets inside, %, by the level")],
        key=[trace["meta"]["method"] for trace in data],
    )


def make_residual_figure(results: dict[str, Any]) -> Figure | None:
    """Predicted values against true ones, in the target's own unit."""
    found = {
        index: pairs
        for index, method in enumerate(results["methods"])
        if (pairs := read_pairs(method.get("residuals"), "truth", "predicted"))
    }
    if not found:
        return None
    every = [value for pairs in found.values() for pair in pairs for value in pair]
    room = 0.03 * (max(every) - min(every)) or 1.0
    ends = [min(every) - room, max(every) + room]
    name = next((n for m in results["methods"] if (n := (m.get("residuals") or {}).get("target"))), None)
    methods = results["methods"]
    rows = []
    for index, pairs in found.items():
        errors = sorted(abs(predicted - truth) for truth, predicted in pairs)
        bias = sum(predicted - truth for truth, predicted in pairs) / len(pairs)
        cells = [format_value(each, "small") for each in (bias, errors[len(errors) // 2], errors[-1])]
        rows.append([methods[index]["name"], f"{len(pairs):,}", *cells])
    return Figure(
        "residuals",
        "Predicted and true values",
        "Each point is a test row of the first seed's run, in the unit of the target; on the diagonal the prediction is right. "
        "Of many rows some are shown, evenly chosen.",
        [Panel([draw_residuals(index, methods[index]["name"], pairs, ends, name) for index, pairs in found.items()])],
        [Numbers(["method", "rows", "mean error", "median of the absolute error", "largest"], rows)],
        question="method",
        choices=[methods[index]["name"] for index in found],
    )


def draw_residuals(index: int, name: str, pairs: Pairs, ends: list[float], target: str | None) -> View:
    """The scatter plot of one method."""
    what = escape_text(target) if target else "value"
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "name": escape_text(name),
        "x": [truth for truth, _ in pairs],
        "y": [predicted for _, predicted in pairs],
        "marker": make_marker(index, 5) | {"color": method_style(index).token},
        "hovertemplate": "true %{x:.6g}<br>predicted %{y:.6g}<extra></extra>",
    }
    axis = {"range": ends, "nticks": 6, "separatethousands": True, "exponentformat": "none"}
    shown = make_layout(f"predicted {what}", {**axis, "title": axis_title(f"true {what}")}, axis)
    worst = max(pairs, key=lambda pair: abs(pair[1] - pair[0]))
    alt = (
        f"Scatter plot of predicted and true values of {name}: {format_count(len(pairs), 'row')}; the largest error is at a "
        f"true value of {format_value(worst[0], 'small')}, for which {format_value(worst[1], 'small')} is predicted."
    )
    return View(alt, [make_guide(ends, ends), trace], shown)


def read_pairs(curve: Any, first: str, second: str) -> Pairs:
    """The points of a curve of the results, without those that miss a number."""
    if not isinstance(curve, dict):
        return []
    columns = read_series(curve.get(first)), read_series(curve.get(second))
    return [(a, b) for a, b in zip(*columns, strict=False) if a is not None and b is not None]
