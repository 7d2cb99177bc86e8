"""Figures of curves: scores by severity of corruption, risk by coverage, success of an attack by iteration."""

from collections.abc import Callable
from typing import Any

from ..values import Kind, format_count, format_value, format_with_spread, get_nested, parse_value, read_series, read_value
from .traces import Figure, Numbers, Panel, View, axis_title, describe_range, make_layout, make_line


def make_shift_figure(results: dict[str, Any]) -> Figure | None:
    methods = results["methods"]
    measures: list[tuple[str, str, Kind]] = [
        ("accuracy", "accuracy", "percent"),
        ("nll", "NLL", "score"),
        ("ece", "ECE", "percent"),
    ]
    shown = [(key, title, kind) for key, title, kind in measures if any(_read_severities(method, key) for method in methods)]
    if not shown:
        return None
    views = [_make_severity_view(methods, *measure) for measure in shown]
    numbers = [
        Numbers(
            ["method", "clean", *(f"severity {s}" for s in range(1, 6))],
            _format_rows(methods, key, kind),
            title + _format_unit(kind),
        )
        for key, title, kind in shown
    ]
    kinds = dict.fromkeys(kind for method in methods for kind in get_nested(method, "shift", "kinds") or {})
    if kinds:
        rows = [
            [kind.replace("_", " "), *(_format_cell(method, "shift", "kinds", kind) for method in methods)] for kind in kinds
        ]
        numbers.append(
            Numbers(["corruption", *(method["name"] for method in methods)], rows, "accuracy by kind, over its severities, %")
        )
    return Figure(
        "shift",
        "Under corruption",
        "Each point is the mean over the 15 standard kinds of corruption at one severity; 0 is the same rows, clean. "
        "A method that loses less as images get worse stays flatter.",
        [Panel(views)],
        numbers,
        question="score",
        choices=[title for _, title, _ in shown],
        key=[i for i, method in enumerate(methods) if method.get("shift")],
    )


def _read_severities(method: dict[str, Any], key: str) -> list[float | None]:
    return read_series(get_nested(method, "shift", "severities", key))


def _make_severity_view(methods: list[dict[str, Any]], key: str, title: str, kind: Kind) -> View:
    factor = 100 if kind == "percent" else 1
    data, last, first = [], [], []
    for index, method in enumerate(methods):
        curve = _read_severities(method, key)
        if any(v is not None for v in curve):
            hover = f"severity %{{x}}: {title} %{{y:.{2 if factor == 100 else 4}f}}{_format_percent(kind)}"
            data.append(make_line(index, method["name"], range(len(curve)), _scale(curve, factor), hover))
            first.append((method["name"], parse_value(curve[0])))
            last.append((method["name"], parse_value(curve[-1])))
    shown = make_layout(
        title + _format_unit(kind), {"title": axis_title("severity of the corruption"), "dtick": 1, "range": [-0.2, 5.2]}
    )
    alt = (
        f"Line plot of {title} by severity of corruption for {format_count(len(data), 'method')}: on clean rows "
        f"{describe_range(first, kind)}, at the highest severity {describe_range(last, kind)}."
    )
    return View(alt, data, shown)


def make_risk_figure(results: dict[str, Any]) -> Figure | None:
    data, rows, full, half = [], [], [], []
    steps = [0.1 * n for n in range(1, 11)]
    for index, method in enumerate(results["methods"]):
        curve = method.get("risk_coverage") or {}
        pairs = [
            (c, r)
            for c, r in zip(read_series(curve.get("coverage")), read_series(curve.get("risk")), strict=False)
            if c is not None and r is not None
        ]
        if not pairs:
            continue
        thin = _thin(pairs)
        hover = "the most certain %{x:.0f} %: %{y:.2f} % wrong"
        data.append(make_line(index, method["name"], [100 * c for c, _ in thin], [100 * r for _, r in thin], hover, size=6))
        data[-1]["marker"]["maxdisplayed"] = 8
        at = _make_lookup(pairs)
        rows.append([method["name"], *(format_value(at(step), "percent", unit=False) for step in steps)])
        full.append((method["name"], parse_value(at(1.0))))
        half.append((method["name"], parse_value(at(0.5))))
    if not data:
        return None
    alt = (
        f"Risk–coverage curves of {format_count(len(data), 'method')}: the error among the most certain half is "
        f"{describe_range(half, 'percent')}; among all predictions {describe_range(full, 'percent')}."
    )
    axes = (
        {"title": axis_title("accepted predictions, the most certain first, %"), "range": [0, 101]},
        {"rangemode": "tozero"},
    )
    return Figure(
        "risk",
        "Risk against coverage",
        "The error among the most certain predictions, if the others are rejected. Lower is better; the right end is the error "
        "on all rows.",
        [Panel([View(alt, data, make_layout("error among accepted predictions, %", *axes))])],
        [Numbers(["method", *(f"{100 * step:.0f} %" for step in steps)], rows, "error, %, among the most certain …")],
        key=[trace["meta"]["method"] for trace in data],
    )


def _thin(pairs: list[tuple[float, float]], most: int = 120) -> list[tuple[float, float]]:
    """Return at most `most` of the points: ten thousand look the same, but make the page large."""
    if len(pairs) <= most:
        return pairs
    return [pairs[round(i * (len(pairs) - 1) / (most - 1))] for i in range(most)]


def _make_lookup(pairs: list[tuple[float, float]]) -> Callable[[float], float]:
    return lambda coverage: min(pairs, key=lambda pair: abs(pair[0] - coverage))[1]


def make_attack_figure(results: dict[str, Any]) -> Figure | None:
    methods = [(i, method) for i, method in enumerate(results["methods"]) if method.get("attack")]
    if not methods:
        return None
    views = [
        _make_iteration_view(methods, "success", "success of the attack, %", 100),
        _make_iteration_view(methods, "entropy", "mean predictive entropy, nats", 1),
    ]
    views = [view for view in views if view.data]
    title = methods[0][1]["attack"].get("title") or "an attack"
    rows = []
    for _, method in methods:
        for place, name in _list_curves(method):
            success, entropy = read_series(place.get("success")), read_series(place.get("entropy"))
            final = parse_value(place.get("final"))
            end = format_with_spread(final, "percent") if final else format_value(success[-1] if success else None, "percent")
            rows.append(
                [
                    name,
                    end,
                    format_value(entropy[0] if entropy else None, "score"),
                    format_value(entropy[-1] if entropy else None, "score"),
                ]
            )
    dashed = any(get_nested(method, "attack", "one_sample") for _, method in methods)
    return Figure(
        "attack",
        f"Under attack: {title}",
        "By iteration: how often the attack has succeeded, where lower is better, and the entropy of the predictions. "
        "Iteration 0 is before any step: rows that are misclassified anyway count as success. Success with low entropy "
        "means predictions that are both wrong and confident."
        + (
            " Dashed: the same attack with a single draw for each gradient. Noise hides the gradient from this attack; "
            "robustness is shown by the other line of a method."
            if dashed
            else ""
        ),
        [Panel([view]) for view in views],
        [Numbers(["method", "success, evaluated at the end", "entropy at the beginning", "entropy at the end"], rows)],
        arrangement="two" if len(views) > 1 else "one",
        key=[i for i, _ in methods],
    )


def _list_curves(method: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    once = get_nested(method, "attack", "one_sample")
    return [(method["attack"], method["name"]), *([(once, f"{method['name']}, one draw a gradient")] if once else [])]


def _make_iteration_view(methods: list[tuple[int, dict[str, Any]]], key: str, title: str, factor: int) -> View:
    data, last = [], []
    for index, method in methods:
        for place, name in _list_curves(method):
            curve = read_series(place.get(key))
            if not curve:
                continue
            one = place is not method["attack"]
            hover = f"iteration %{{x}}: %{{y:.{2 if factor == 100 else 3}f}}" + (" %" if factor == 100 else "")
            trace = make_line(index, name, range(len(curve)), _scale(curve, factor), hover, 7, "dash" if one else "")
            trace["marker"]["maxdisplayed"] = 6
            data.append(trace)
            last.append((name, parse_value(curve[-1])))
    kind: Kind = "percent" if factor == 100 else "score"
    alt = f"Line plot by iteration, {title.split(',')[0]}: at the end {describe_range(last, kind)}."
    return View(alt, data, make_layout(title, {"title": axis_title("iteration")}, {"rangemode": "tozero"}))


def _format_rows(methods: list[dict[str, Any]], key: str, kind: Kind) -> list[list[str]]:
    rows = [(method["name"], _read_severities(method, key)) for method in methods]
    return [[name, *(format_value(v, kind, unit=False) for v in curve)] for name, curve in rows if curve]


def _format_cell(method: dict[str, Any], *path: str) -> str:
    v = read_value(method, *path)
    return format_value(v.value, "percent", unit=False) if v else "–"


def _scale(curve: list[float | None], factor: int) -> list[float | None]:
    return [None if v is None else v * factor for v in curve]


def _format_unit(kind: Kind) -> str:
    return ", %" if kind == "percent" else ""


def _format_percent(kind: Kind) -> str:
    return " %" if kind == "percent" else ""
