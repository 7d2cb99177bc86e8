"""Figures on the diversity of members and on out-of-distribution detection."""

from typing import Any

from ..columns import UNCERTAINTIES, is_regression
from ..palette import method_style
from ..values import Value, format_count, format_with_spread, read_value
from .traces import (
    Figure,
    Numbers,
    Panel,
    Trace,
    View,
    axis_title,
    describe_error_bars,
    describe_range,
    escape_text,
    make_guide,
    make_layout,
    make_marker,
    make_point,
)


def make_diversity_figure(results: dict[str, Any]) -> Figure | None:
    return _make_regression_figure(results) if is_regression(results) else _make_classification_figure(results)


def _make_classification_figure(results: dict[str, Any]) -> Figure | None:
    found = _read_pairs(results, ("diversity", "disagreement"), ("member_scores", "accuracy"))
    if not found:
        return None
    methods = results["methods"]
    data = []
    for i, x, y in found:
        whole = read_value(methods[i], "scores", "accuracy")
        together = f"<br>together {format_with_spread(whole, 'percent')}" if whole else ""
        hover = f"members disagree on {format_with_spread(x, 'percent')}"
        hover += f"<br>one member alone {format_with_spread(y, 'percent')}{together}"
        data.append(make_point(i, methods[i]["name"], x, y, hover, (True, True)))
    alt = (
        f"Scatter plot of {format_count(len(found), 'method')}: two members disagree on "
        f"{describe_range([(methods[i]['name'], x) for i, x, _ in found], 'percent')} of the rows; one member "
        f"alone is right in {describe_range([(methods[i]['name'], y) for i, _, y in found], 'percent')}."
    )
    scores = [
        ("disagreement", ("diversity", "disagreement"), "percent"),
        ("disagreement by error", ("diversity", "normalised_disagreement"), "small"),
        ("pairwise KL", ("diversity", "pairwise_kl"), "small"),
        ("correlation of errors", ("diversity", "error_correlation"), "small"),
        ("one member's accuracy", ("member_scores", "accuracy"), "percent"),
        ("accuracy together", ("scores", "accuracy"), "percent"),
    ]
    return Figure(
        "diversity",
        "Diversity against the skill of a member",
        "Right: members disagree more often. Up: one member alone is more often right. Averaging gains from disagreement among "
        "good members, not from bad ones. " + describe_error_bars([v for _, x, y in found for v in (x, y)]),
        [
            Panel(
                [
                    View(
                        alt,
                        data,
                        make_layout("one member's accuracy, %", {"title": axis_title("rows on which two members disagree, %")}),
                    )
                ],
                labels=True,
            )
        ],
        [_make_numbers(methods, scores)],
        key=[i for i, _, _ in found],
    )


def _make_regression_figure(results: dict[str, Any]) -> Figure | None:
    found = _read_pairs(results, ("member_scores", "rmse"), ("scores", "rmse"))
    if not found:
        return None
    methods = results["methods"]
    data: list[Trace] = []
    for i, x, y in found:
        hover = f"one member alone {format_with_spread(x, 'small')}<br>together {format_with_spread(y, 'small')}"
        data.append(make_point(i, methods[i]["name"], x, y, hover, (False, False)))
    ends = [v.value for _, x, y in found for v in (x, y)]
    reach = [min(ends), max(ends)]
    alt = (
        f"Scatter plot of {format_count(len(found), 'method')}: RMSE of one member alone, "
        f"{describe_range([(methods[i]['name'], x) for i, x, _ in found], 'small')}, against RMSE together, "
        f"{describe_range([(methods[i]['name'], y) for i, _, y in found], 'small')}."
    )
    scores = [
        ("one member's RMSE", ("member_scores", "rmse"), "small"),
        ("RMSE together", ("scores", "rmse"), "small"),
        ("squared error together", ("diversity", "bias"), "small"),
        ("variance among members", ("diversity", "variance"), "small"),
    ]
    return Figure(
        "diversity",
        "What members gain together",
        "Below the dashed diagonal the average answers better than one of its members alone; the distance to it is what their "
        "variance brings. " + describe_error_bars([v for _, x, y in found for v in (x, y)]),
        [
            Panel(
                [
                    View(
                        alt,
                        [make_guide(reach, reach), *data],
                        make_layout("RMSE together", {"title": axis_title("one member's RMSE")}),
                    )
                ],
                labels=True,
            )
        ],
        [_make_numbers(methods, scores)],
        key=[i for i, _, _ in found],
    )


def _read_pairs(results: dict[str, Any], x: tuple[str, ...], y: tuple[str, ...]) -> list[tuple[int, Value, Value]]:
    """Return both values of every method that has members; a single network has no diversity."""
    read_both = ((i, read_value(m, *x), read_value(m, *y)) for i, m in enumerate(results["methods"]) if m.get("members") != 1)
    return [(i, a, b) for i, a, b in read_both if a is not None and b is not None]


def _make_numbers(methods: list[dict[str, Any]], scores: list[Any]) -> Numbers:
    scores = [entry for entry in scores if any(read_value(method, *entry[1]) for method in methods)]
    rows = [
        [m["name"], *(format_with_spread(v, kind) if (v := read_value(m, *path)) else "–" for _, path, kind in scores)]
        for m in methods
    ]
    return Numbers(["method", *(title for title, _, _ in scores)], rows)


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
