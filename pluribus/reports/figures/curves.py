"""What happens step by step: worse images, fewer answers, a longer attack."""

from collections.abc import Callable
from typing import Any

from ..reading import Kind, counted, dig, read, sentence, series, value, written
from .model import Figure, Numbers, Panel, View, extremes, layout, line, named


def shift(results: dict[str, Any]) -> Figure | None:
    methods = results["methods"]
    measures: list[tuple[str, str, Kind]] = [
        ("accuracy", "accuracy", "percent"),
        ("nll", "NLL", "score"),
        ("ece", "ECE", "percent"),
    ]
    shown = [(key, title, kind) for key, title, kind in measures if any(_severities(method, key) for method in methods)]
    if not shown:
        return None
    views = [_by_severity(methods, *measure) for measure in shown]
    numbers = [
        Numbers(["method", "clean", *(f"severity {s}" for s in range(1, 6))], _cells(methods, key, kind), title + _unit(kind))
        for key, title, kind in shown
    ]
    kinds = dict.fromkeys(kind for method in methods for kind in dig(method, "shift", "kinds") or {})
    if kinds:
        rows = [[kind.replace("_", " "), *(_cell(method, "shift", "kinds", kind) for method in methods)] for kind in kinds]
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


def _severities(method: dict[str, Any], key: str) -> list[float | None]:
    return series(dig(method, "shift", "severities", key))


def _by_severity(methods: list[dict[str, Any]], key: str, title: str, kind: Kind) -> View:
    factor = 100 if kind == "percent" else 1
    data, last, first = [], [], []
    for index, method in enumerate(methods):
        curve = _severities(method, key)
        if any(v is not None for v in curve):
            hover = f"severity %{{x}}: {title} %{{y:.{2 if factor == 100 else 4}f}}{_percent(kind)}"
            data.append(line(index, method["name"], range(len(curve)), _scaled(curve, factor), hover))
            first.append((method["name"], value(curve[0])))
            last.append((method["name"], value(curve[-1])))
    shown = layout(title + _unit(kind), {"title": named("severity of the corruption"), "dtick": 1, "range": [-0.2, 5.2]})
    alt = (
        f"Line plot of {title} by severity of corruption for {counted(len(data), 'method')}: on clean rows "
        f"{extremes(first, kind)}, at the highest severity {extremes(last, kind)}."
    )
    return View(alt, data, shown)


def risk_coverage(results: dict[str, Any]) -> Figure | None:
    data, rows, full, half = [], [], [], []
    steps = [0.1 * n for n in range(1, 11)]
    for index, method in enumerate(results["methods"]):
        curve = method.get("risk_coverage") or {}
        pairs = [
            (c, r)
            for c, r in zip(series(curve.get("coverage")), series(curve.get("risk")), strict=False)
            if c is not None and r is not None
        ]
        if not pairs:
            continue
        thin = _thinned(pairs)
        hover = "the surest %{x:.0f} %: %{y:.2f} % wrong"
        data.append(line(index, method["name"], [100 * c for c, _ in thin], [100 * r for _, r in thin], hover, size=6))
        data[-1]["marker"]["maxdisplayed"] = 8
        at = _reader(pairs)
        rows.append([method["name"], *(written(at(step), "percent", unit=False) for step in steps)])
        full.append((method["name"], value(at(1.0))))
        half.append((method["name"], value(at(0.5))))
    if not data:
        return None
    alt = (
        f"Risk–coverage curves of {counted(len(data), 'method')}: the error among the surest half is "
        f"{extremes(half, 'percent')}; among all answers {extremes(full, 'percent')}."
    )
    axes = ({"title": named("answers given, the surest first, %"), "range": [0, 101]}, {"rangemode": "tozero"})
    return Figure(
        "risk",
        "Risk against coverage",
        "If a method may pass on the answers that it is least sure of, how many of the rest are wrong? Lower is better; "
        "the right end is the error on all rows.",
        [Panel([View(alt, data, layout("wrong among the answers given, %", *axes))])],
        [Numbers(["method", *(f"{100 * step:.0f} %" for step in steps)], rows, "error, %, among the surest …")],
        key=[trace["meta"]["method"] for trace in data],
    )


def _thinned(pairs: list[tuple[float, float]], most: int = 120) -> list[tuple[float, float]]:
    """Ten thousand points look like a hundred, and are a page of their own."""
    if len(pairs) <= most:
        return pairs
    return [pairs[round(i * (len(pairs) - 1) / (most - 1))] for i in range(most)]


def _reader(pairs: list[tuple[float, float]]) -> Callable[[float], float]:
    return lambda coverage: min(pairs, key=lambda pair: abs(pair[0] - coverage))[1]


def attack(results: dict[str, Any]) -> Figure | None:
    methods = [(i, method) for i, method in enumerate(results["methods"]) if method.get("attack")]
    if not methods:
        return None
    views = [
        _iterations(methods, "success", "success of the attack, %", 100),
        _iterations(methods, "entropy", "mean predictive entropy, nats", 1),
    ]
    views = [view for view in views if view.data]
    title = methods[0][1]["attack"].get("title") or "an attack"
    rows = []
    for _, method in methods:
        for place, name in _curves(method):
            success, entropy = series(place.get("success")), series(place.get("entropy"))
            final = value(place.get("final"))
            end = sentence(final, "percent") if final else written(success[-1] if success else None, "percent")
            rows.append(
                [
                    name,
                    end,
                    written(entropy[0] if entropy else None, "score"),
                    written(entropy[-1] if entropy else None, "score"),
                ]
            )
    dashed = any(dig(method, "attack", "one_sample") for _, method in methods)
    return Figure(
        "attack",
        f"Under attack: {title}",
        "By iteration: how often the attack has succeeded, where lower is better, and how unsure the answers are. Iteration 0 "
        "is before any step: what is wrong by itself counts as success. Success "
        "while the entropy stays low is an answer both wrong and confident."
        + (
            " Dashed: the same attack with a single draw for each gradient, from which noise hides; the other line of a method "
            "is the one that speaks for robustness."
            if dashed
            else ""
        ),
        [Panel([view]) for view in views],
        [Numbers(["method", "success, judged afresh in the end", "entropy at first", "entropy in the end"], rows)],
        arrangement="two" if len(views) > 1 else "one",
        key=[i for i, _ in methods],
    )


def _curves(method: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    once = dig(method, "attack", "one_sample")
    return [(method["attack"], method["name"]), *([(once, f"{method['name']}, one draw a gradient")] if once else [])]


def _iterations(methods: list[tuple[int, dict[str, Any]]], key: str, title: str, factor: int) -> View:
    data, last = [], []
    for index, method in methods:
        for place, name in _curves(method):
            curve = series(place.get(key))
            if not curve:
                continue
            one = place is not method["attack"]
            hover = f"iteration %{{x}}: %{{y:.{2 if factor == 100 else 3}f}}" + (" %" if factor == 100 else "")
            trace = line(index, name, range(len(curve)), _scaled(curve, factor), hover, 7, "dash" if one else "")
            trace["marker"]["maxdisplayed"] = 6
            data.append(trace)
            last.append((name, value(curve[-1])))
    kind: Kind = "percent" if factor == 100 else "score"
    alt = f"Line plot by iteration, {title.split(',')[0]}: in the end {extremes(last, kind)}."
    return View(alt, data, layout(title, {"title": named("iteration")}, {"rangemode": "tozero"}))


def _cells(methods: list[dict[str, Any]], key: str, kind: Kind) -> list[list[str]]:
    rows = [(method["name"], _severities(method, key)) for method in methods]
    return [[name, *(written(v, kind, unit=False) for v in curve)] for name, curve in rows if curve]


def _cell(method: dict[str, Any], *path: str) -> str:
    v = read(method, *path)
    return written(v.value, "percent", unit=False) if v else "–"


def _scaled(curve: list[float | None], factor: int) -> list[float | None]:
    return [None if v is None else v * factor for v in curve]


def _unit(kind: Kind) -> str:
    return ", %" if kind == "percent" else ""


def _percent(kind: Kind) -> str:
    return " %" if kind == "percent" else ""
