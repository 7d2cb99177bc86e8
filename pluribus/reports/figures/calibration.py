"""Figures on calibration: reliability diagrams, and scores before and after temperature scaling."""

from typing import Any

from ..palette import method_style
from ..values import Value, format_count, format_value, format_with_spread, get_nested, read_series, read_value, to_finite
from .traces import Figure, Layout, Numbers, Panel, Trace, View, axis_title, escape_text, make_guide, make_layout, make_marker


def make_reliability_figure(results: dict[str, Any]) -> Figure | None:
    bins = {index: found for index, method in enumerate(results["methods"]) if (found := read_reliability_bins(method))}
    if not bins:
        return None
    names = {index: results["methods"][index]["name"] for index in bins}
    rows = [
        [
            names[index],
            format_value(confidence, "percent"),
            format_value(accuracy, "percent"),
            _format_signed(accuracy - confidence),
            f"{count:,.0f}",
        ]
        for index, found in bins.items()
        for confidence, accuracy, count in found
    ]
    return Figure(
        "reliability",
        "Reliability",
        "Answers are sorted into bins by confidence. On the diagonal a method is right as often as it claims; a stem below it "
        "is overconfidence, above it underconfidence. The strip underneath is the share of all answers in each bin, in %: long "
        "stems over an empty strip rest on few rows.",
        [Panel([_make_diagram(results, index, found)], height=270) for index, found in bins.items()],
        [Numbers(["method", "mean confidence", "accuracy", "gap", "rows"], rows)],
        arrangement="many",
    )


def read_reliability_bins(method: dict[str, Any]) -> list[tuple[float, float, float]]:
    """Return mean confidence, accuracy and number of rows of each bin of one method that is not empty."""
    curve = method.get("reliability") or {}
    columns = (read_series(curve.get(part)) for part in ("confidence", "accuracy", "count"))
    return [(c, a, n) for c, a, n in zip(*columns, strict=False) if c is not None and a is not None and n]


def _make_diagram(results: dict[str, Any], index: int, bins: list[tuple[float, float, float]]) -> View:
    method, look = results["methods"][index], method_style(index)
    total = sum(count for _, _, count in bins)
    x, y = [100 * c for c, _, _ in bins], [100 * a for _, a, _ in bins]
    stems_x = [end for c in x for end in (c, c, None)]
    stems_y = [end for c, a in zip(x, y, strict=True) for end in (c, a, None)]
    stems: Trace = {"type": "scatter", "mode": "lines", "x": stems_x, "y": stems_y, "hoverinfo": "skip"}
    stems |= {"line": {"color": look.token, "width": 4}, "opacity": 0.45}
    dots: Trace = {
        "type": "scatter",
        "mode": "markers",
        "name": escape_text(method["name"]),
        "x": x,
        "y": y,
        "marker": make_marker(index, 8),
    }
    dots["customdata"] = [[f"{n:,.0f}", _format_signed(a - c)] for c, a, n in bins]
    dots["hovertemplate"] = (
        "confidence %{x:.1f} %<br>accuracy %{y:.1f} %<br>gap %{customdata[1]}<br>%{customdata[0]} rows<extra></extra>"
    )
    strip: Trace = {"type": "bar", "x": x, "y": [100 * n / total for _, _, n in bins], "yaxis": "y2", "width": 4}
    strip |= {"marker": {"color": look.token}, "customdata": dots["customdata"]}
    strip["hovertemplate"] = "%{customdata[0]} rows, %{y:.1f} %<extra></extra>"
    ends = {"range": [-4, 104], "tickvals": [0, 50, 100]}
    shown = make_layout(
        "accuracy, %", {**ends, "title": axis_title("confidence, %"), "anchor": "y2"}, {**ends, "domain": [0.32, 1]}
    )
    shown["yaxis2"] = {**shown["yaxis"], "domain": [0, 0.18], "range": [0, 105], "tickvals": [0, 100], "showgrid": False}
    shown |= {"margin": {"l": 30, "r": 6, "t": 22, "b": 40}, "bargap": 0, "font": {"color": "@ink", "size": 11}}
    small = {"size": 11, "color": "@muted"}
    shown["title"] |= {"font": small, "pad": {"t": 2, "l": 0}}
    shown["xaxis"]["title"] = {**axis_title("confidence, %"), "font": small}
    above = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 0.2, "yanchor": "bottom", "showarrow": False}
    shown["annotations"] = [{**above, "text": "answers, %", "font": small}]
    widest = max(bins, key=lambda found: abs(found[1] - found[0]) * found[2])
    ece = read_value(method, "scores", "ece")
    alt = (
        f"Reliability diagram of {method['name']}: {format_count(len(bins), 'bin')} with {total:,.0f} answers"
        + (f", ECE {format_with_spread(ece, 'percent')}" if ece else "")
        + f". The bin that weighs most claims {format_value(widest[0], 'percent')} and is right in "
        f"{format_value(widest[1], 'percent')} of {format_count(round(widest[2]), 'row')}."
    )
    return View(alt, [make_guide([0, 100], [0, 100]), stems, dots, strip], shown)


def _format_signed(gap: float) -> str:
    return ("+" if gap >= 0 else "−") + f"{abs(100 * gap):.2f}"


def make_temperature_figure(results: dict[str, Any]) -> Figure | None:
    methods = [(i, method) for i, method in enumerate(results["methods"]) if method.get("tempered")]
    scores = [
        (key, title, kind)
        for key, title, kind in (("nll", "NLL", "score"), ("ece", "ECE, %", "percent"))
        if any(read_value(method, "tempered", key) and read_value(method, "scores", key) for _, method in methods)
    ]
    if not scores:
        return None
    panels = [
        Panel([_make_steps(methods, key, title, kind == "percent")], height=84 + 34 * len(methods))
        for key, title, kind in scores
    ]
    head = ["method", "temperature", *(f"{title} {when}" for _, title, _ in scores for when in ("before", "after"))]
    rows = []
    for _, method in methods:
        t = get_nested(method, "tempered", "temperature")
        cells = [(read_value(method, place, key), kind) for key, _, kind in scores for place in ("scores", "tempered")]
        found = read_value({"t": t}, "t")
        row = [method["name"], format_with_spread(found, "small") if found else "–"]
        rows.append(row + [format_with_spread(v, kind) if v else "–" for v, kind in cells])  # type: ignore[arg-type]
    return Figure(
        "temperature",
        "After temperature scaling",
        "All other numbers on this page are without temperature scaling. Here one temperature for each method was fitted on "
        "validation rows. A line goes from the score before (upright stroke) to the score after (symbol); left is better.",
        panels,
        [Numbers(head, rows)],
        arrangement="two" if len(panels) > 1 else "one",
    )


def _make_steps(methods: list[tuple[int, dict[str, Any]]], key: str, title: str, percent: bool) -> View:
    factor, kind = (100, "percent") if percent else (1, "score")
    data: list[Trace] = []
    names: list[Layout] = []
    changes: list[tuple[float, str, Value, Value]] = []
    for place, (index, method) in enumerate(methods):
        before, after = read_value(method, "scores", key), read_value(method, "tempered", key)
        row = len(methods) - 1 - place
        names.append(_name_row(row, method["name"]))
        if before is None or after is None:
            continue
        changes.append((after.value - before.value, method["name"], before, after))
        ends = [before.value * factor, after.value * factor]
        trace: Trace = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": escape_text(method["name"]),
            "x": ends,
            "y": [row, row],
        }
        last = make_marker(index, 10)
        trace["marker"] = last | {
            "symbol": ["line-ns-open", last["symbol"]],
            "size": [13, last["size"]],
            "line": {"width": [2, last["line"]["width"]]},
        }
        trace["marker"]["opacity"] = 1
        trace["line"] = {"color": method_style(index).token, "width": 2}
        trace["meta"] = {"method": index}
        t = to_finite(get_nested(method, "tempered", "temperature"))
        t = t if t is not None else to_finite(get_nested(method, "tempered", "temperature", "mean"))
        told = f"before {format_value(before.value, kind)}<br>after {format_value(after.value, kind)}"  # type: ignore[arg-type]
        hot = f"<br>temperature {t:.3g}" if t is not None else ""
        trace["hovertemplate"] = f"<b>%{{fullData.name}}</b><br>{told}{hot}<extra></extra>"
        data.append(trace)
    y = {"range": [-0.6, len(methods) - 0.35], "showticklabels": False, "showgrid": False}
    shown = make_layout(title, {"nticks": 6}, y, annotations=names, margin={"l": 10, "r": 14, "t": 34, "b": 30})
    if not changes:
        return View(f"No method has {title} before and after.", [], shown)
    _, name, before, after = min(changes, key=lambda change: change[0])
    lower = sum(change[0] < 0 for change in changes)
    short = title.split(",")[0]
    alt = (
        f"{short} before and after temperature scaling: lower afterwards for {lower} of {format_count(len(changes), 'method')}"
    )
    if lower:
        texts = [format_value(v.value, kind) for v in (before, after)]  # type: ignore[arg-type]
        alt += f"; the largest fall is that of {name}, from {texts[0]} to {texts[1]}"
    alt += "."
    return View(alt, data, shown)


def _name_row(row: int, name: str) -> Layout:
    """Return the annotation that names a row. It stands above the row: on the left it would take half the width of a phone."""
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": row, "yanchor": "bottom", "yshift": 5}
    return {**place, "text": escape_text(name), "showarrow": False, "font": {"size": 11, "color": "@muted"}}
