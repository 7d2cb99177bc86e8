"""The figure on out-of-distribution detection."""

from typing import Any

from ..palette import method_style
from ..table_columns import UNCERTAINTIES
from ..values import format_count, format_with_spread, read_value
from .traces import (
    Figure,
    Numbers,
    Panel,
    Trace,
    View,
    describe_error_bars,
    describe_range,
    escape_text,
    make_layout,
    make_marker,
)


def make_detection_figure(results: dict[str, Any]) -> Figure | None:
    methods = results["methods"]
    sets = list(dict.fromkeys(name for method in methods for name in method.get("ood") or {}))
    uncertainties = [d for d in UNCERTAINTIES if any(read_value(m, "ood", name, "auroc", d) for m in methods for name in sets)]
    if not uncertainties:
        return None
    present = [i for i, method in enumerate(methods) if method.get("ood")]
    rows = [
        [
            m["name"],
            name,
            d.replace("-", " "),
            *(format_with_spread(v, "percent") if (v := read_value(m, "ood", name, s, d)) else "–" for s in ("auroc", "fpr95")),
        ]
        for m in methods
        for name in sets
        for d in uncertainties
        if read_value(m, "ood", name, "auroc", d)
    ]
    values = [read_value(m, "ood", name, "auroc", d) for m in methods for name in sets for d in uncertainties]
    return Figure(
        "ood",
        "Out-of-distribution detection",
        "For each out-of-distribution set, the probability that one of its rows is less certain than a test row (AUROC): 50 % "
        "is guessing, 100 % a perfect separation. " + describe_error_bars(values),
        [
            Panel(
                [_make_detection_view(methods, present, sets, d) for d in uncertainties],
                height=90 + len(sets) * (30 + 16 * len(present)),
            )
        ],
        [Numbers(["method", "set", "detected by", "AUROC", "FPR at 95 % TPR"], rows)],
        question="detected by",
        choices=[d.replace("-", " ") for d in uncertainties],
        key=present,
    )


def _make_detection_view(methods: list[dict[str, Any]], present: list[int], sets: list[str], uncertainty: str) -> View:
    """Draw a thin bar from chance level to the AUROC for each method and set, with the symbol of the method at its end."""
    band = len(present) + 2
    data, best = [], []
    for place, index in enumerate(present):
        at = [(len(sets) - 1 - s) * band + len(present) - place for s in range(len(sets))]
        found = [read_value(methods[index], "ood", name, "auroc", uncertainty) for name in sets]
        known = [(y, v, name) for y, v, name in zip(at, found, sets, strict=True) if v is not None]
        if not known:
            continue
        token = method_style(index).token
        stems: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "meta": {"method": index}}
        stems |= {
            "x": [x for _, v, _ in known for x in (50, 100 * v.value, None)],
            "y": [e for y, _, _ in known for e in (y, y, None)],
        }
        stems |= {"line": {"color": token, "width": 2}, "opacity": 0.5}
        dots: Trace = {
            "type": "scatter",
            "mode": "markers",
            "name": escape_text(methods[index]["name"]),
            "meta": {"method": index},
        }
        dots |= {"x": [100 * v.value for _, v, _ in known], "y": [y for y, _, _ in known], "marker": make_marker(index, 10)}
        dots["text"] = [f"{escape_text(name)}: AUROC {format_with_spread(v, 'percent')}" for _, v, name in known]
        dots["hovertemplate"] = "<b>%{fullData.name}</b><br>%{text}<extra></extra>"
        if all(v.reach for _, v, _ in known):
            ends = [v.reach or (v.value, v.value) for _, v, _ in known]
            dots["error_x"] = {"type": "data", "symmetric": False, "thickness": 1.4, "width": 3, "color": token}
            dots["error_x"]["array"] = [
                100 * max(0.0, high - v.value) for (_, high), (_, v, _) in zip(ends, known, strict=True)
            ]
            dots["error_x"]["arrayminus"] = [
                100 * max(0.0, v.value - low) for (low, _), (_, v, _) in zip(ends, known, strict=True)
            ]
        data += [stems, dots]
        best += [(f"{methods[index]['name']} on {name}", v) for _, v, name in known]
    names = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": (len(sets) - s) * band - 0.6, "yanchor": "middle", "showarrow": False}
        | {"text": f"<b>{escape_text(name)}</b>", "font": {"size": 12, "color": "@ink"}, "bgcolor": "@paper"}
        for s, name in enumerate(sets)
    ]
    y = {"range": [0, len(sets) * band], "showticklabels": False, "showgrid": False}
    alt = f"AUROC by {uncertainty.replace('-', ' ')} on {format_count(len(sets), 'out-of-distribution set')}: "
    alt += f"{describe_range(best, 'percent')}."
    shown = make_layout("AUROC, %", {"nticks": 7}, y, annotations=names, margin={"l": 10, "r": 14, "t": 34, "b": 30})
    line = {"color": "@muted", "width": 1, "dash": "dot"}
    shown["shapes"] = [{"type": "line", "yref": "paper", "x0": 50, "x1": 50, "y0": 0, "y1": 1, "line": line, "layer": "below"}]
    return View(alt, data, shown)
