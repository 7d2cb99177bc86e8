"""Figures of scores against cost."""

from typing import Any

from ..table_columns import COSTS, EQUIVALENTS, SHARE, Column, select_columns
from ..values import (
    LOWEST_SHARE,
    Value,
    format_count,
    format_estimate,
    format_value,
    format_with_spread,
    join_words,
    read_series,
)
from .traces import (
    Figure,
    Numbers,
    Panel,
    Trace,
    View,
    describe_error_bars,
    describe_range,
    find_pareto_front,
    make_cost_axis,
    make_guide,
    make_layout,
    make_point,
)

LATENCY = COSTS[0]


def make_lead_figure(results: dict[str, Any]) -> Figure | None:
    """The picture that the page leads with: equivalents against latency, or shares where there is no deep ensemble."""
    return make_equivalents_figure(results) or make_share_figure(results)


def read_network_line(results: dict[str, Any]) -> list[tuple[float, int]]:
    """The latencies and sizes of deep ensembles of 1, 2, … networks; empty where they are not known."""
    latencies = read_series((results.get("reference_curve") or {}).get("latency"))
    return [(latency, size) for size, latency in enumerate(latencies, 1) if latency is not None]


def make_equivalents_figure(results: dict[str, Any]) -> Figure | None:
    found = _read_pairs(results, LATENCY, EQUIVALENTS)
    if len(found) < 2:
        return None
    names, line = [results["methods"][i]["name"] for i, _, _ in found], read_network_line(results)
    data = [make_guide([x for x, _ in line], [y for _, y in line], "solid", name="networks")] if line else []
    for trace in data:  # every point is a number of networks
        trace |= {"mode": "lines+markers", "marker": {"color": "@muted", "size": 5}}
    for i, x, y in found:
        trace = _make_trace(results, i, x, y, LATENCY, EQUIVALENTS)
        if y.beyond:  # its point stands at the end of the curve, and its name says that it is beyond
            trace["meta"] |= {"beyond": f" ({format_estimate(y, 'equivalents')})"}
        data.append(trace)
    every = [*(x for _, x, _ in found), *(Value(x) for x, _ in line)]
    shown = make_layout("independent networks that answer as well", make_cost_axis(every, "latency as deployed, × one network"))
    most = max(y.limits[1] for _, _, y in found)
    shown["yaxis"] |= {"range": [0.7, most + 0.3], "tickvals": list(range(1, round(most) + 1, max(round(most) // 8, 1)))}
    alt = (
        f"Scatter plot of {format_count(len(found), 'method')}: deep-ensemble equivalents, "
        f"{describe_range(list(zip(names, (y for _, _, y in found), strict=True)), 'equivalents')}, against deployed latency, "
        f"{describe_range(list(zip(names, (x for _, x, _ in found), strict=True)), 'ratio')}."
    )
    rows = [
        [name, format_with_spread(y, "equivalents"), format_with_spread(x, "ratio")]
        for name, (_, x, y) in zip(names, found, strict=True)
    ]
    return Figure(
        "equivalents",
        "What methods are worth, in networks, against latency",
        "Up is how many independent networks have as low a calibrated NLL, left is a faster answer. The line is what that many "
        "networks cost: a method above it is better than paying for networks. Nothing is extrapolated: a method at 1 or at "
        f"{most:g} may be beyond. " + describe_error_bars([y for _, _, y in found]),
        [Panel([View(alt, data, shown)], labels=True)],
        [Numbers(["method", "equivalents (95 % interval)", "latency (95 % interval)"], rows)],
        key=[i for i, _, _ in found],
    )


def make_share_figure(results: dict[str, Any]) -> Figure | None:
    every = _read_pairs(results, LATENCY, SHARE)
    found = [entry for entry in every if entry[2].value >= LOWEST_SHARE]
    if len(found) < 2:
        return None
    far = [results["methods"][i]["name"] for i, _, y in every if y.value < LOWEST_SHARE]
    names = [results["methods"][i]["name"] for i, _, _ in found]
    data = [_make_trace(results, i, x, y, LATENCY, SHARE) for i, x, y in found]
    shown = make_layout(
        "share of the deep ensemble's gain, %", make_cost_axis([x for _, x, _ in found], "latency as deployed, × one network")
    )
    shown["shapes"] = [_make_level(0), _make_level(100)]
    best = max(found, key=lambda entry: entry[2].value)
    alt = (
        f"Scatter plot of {format_count(len(found), 'method')}: share of the deep ensemble's NLL gain, "
        f"{describe_range(list(zip(names, (y for _, _, y in found), strict=True)), 'share')}, against deployed latency, "
        f"{describe_range(list(zip(names, (x for _, x, _ in found), strict=True)), 'ratio')}. "
        f"The highest share costs {format_value(best[1].value, 'ratio')} the latency of one network."
    )
    rows = [
        [results["methods"][i]["name"], format_with_spread(y, "share"), format_with_spread(x, "ratio")] for i, x, y in every
    ]
    lows = [100 * (y.low if y.low is not None else y.value) for _, _, y in found]
    highs = [100 * (y.high if y.high is not None else y.value) for _, _, y in found]
    shown["yaxis"]["range"] = [
        max(min(lows), 100 * LOWEST_SHARE) - 8,
        min(max(highs), 300) + 8,
    ]  # longer error bars are cut off
    return Figure(
        "share",
        "Share of the gain against latency",
        "Up is more of what a deep ensemble gains over one network in NLL (100 %: all of it; 0 %: nothing), left is a faster "
        "answer. "
        + describe_error_bars([y for _, _, y in found])
        + (f" Not shown, far below: {join_words(far)}." if far else ""),
        [Panel([View(alt, data, shown)], labels=True)],
        [Numbers(["method", "share of the gain (95 % interval)", "latency (95 % interval)"], rows)],
        key=[i for i, _, _ in found],
    )


def capitalize(text: str) -> str:
    """Return a text whose first letter is a capital; the others stay as they are."""
    return text[:1].upper() + text[1:]


def choose_nll(results: dict[str, Any]) -> str:
    """The key of the NLL that decides."""
    return str(results.get("decided_by") or "nll")


def make_cost_figure(results: dict[str, Any]) -> Figure | None:
    scores = [column for column in select_columns(results) if column.key in ("accuracy", "rmse", choose_nll(results))]
    costs = [cost for cost in COSTS if any(_read_pairs(results, cost, score) for score in scores)]
    if not scores or not costs or len(results["methods"]) < 2:
        return None
    panels = [Panel([_make_pareto_view(results, cost, score) for cost in costs], labels=True) for score in scores]
    rows = [
        [m["name"], *(format_with_spread(v, c.kind) if (v := c.read(m)) else "–" for c in (*scores, *costs))]
        for m in results["methods"]
    ]
    spread = describe_error_bars([score.read(method) for score in scores for method in results["methods"]])
    return Figure(
        "cost",
        capitalize(f"{join_words(score.title for score in scores)} against cost"),
        "Left is cheaper; accuracy is better further up, an error or NLL further down. The stepped line joins the methods that "
        f"no cheaper one beats in the mean. {spread}",
        panels,
        [Numbers(["method", *(c.title + (f", {c.unit}" if c.unit else "") for c in (*scores, *costs))], rows)],
        arrangement="two" if len(panels) > 1 else "one",
        question="cost",
        choices=[cost.title for cost in costs],
        key=list(range(len(results["methods"]))),
    )


def _make_pareto_view(results: dict[str, Any], cost: Column, score: Column) -> View:
    found = _read_pairs(results, cost, score)
    title = score.title + (f", {score.unit}" if score.unit else "")
    if not found:
        return View(f"No method has both {score.title} and {cost.title}.", [], make_layout(title))
    axis = make_cost_axis([x for _, x, _ in found], cost.about.replace("time of one answer", "latency"))
    kept = find_pareto_front([x.value for _, x, _ in found], [score.loss(y.value) for _, _, y in found])
    factor = 100 if score.kind == "percent" else 1
    xs, ys = [found[k][1].value for k in kept], [found[k][2].value * factor for k in kept]
    # The front continues to the right edge: no method there is both dearer and better.
    end = 10 ** axis["range"][1] if axis.get("type") == "log" else axis["range"][1]
    data = [make_guide([*xs, end], [*ys, ys[-1]], "dot", "hv", "front")]
    data += [_make_trace(results, i, x, y, cost, score) for i, x, y in found]
    winners = [results["methods"][found[k][0]]["name"] for k in kept]
    pairs = [(results["methods"][i]["name"], y) for i, _, y in found]
    alt = (
        f"Scatter plot of {format_count(len(found), 'method')}: {score.title} {describe_range(pairs, score.kind)} "
        f"against {cost.title}. No cheaper method has a better mean than {join_words(winners)}."
    )
    return View(alt, data, make_layout(title, axis))


def _read_pairs(results: dict[str, Any], cost: Column, score: Column) -> list[tuple[int, Value, Value]]:
    pairs = ((i, cost.read(method), score.read(method)) for i, method in enumerate(results["methods"]))
    return [(i, x, y) for i, x, y in pairs if x is not None and y is not None]


def _make_trace(results: dict[str, Any], index: int, x: Value, y: Value, cost: Column, score: Column) -> Trace:
    hover = f"{score.title} {format_with_spread(y, score.kind)}<br>{cost.title} {format_with_spread(x, cost.kind)}"
    percent = (False, score.kind in ("percent", "share"))
    return make_point(index, results["methods"][index]["name"], x, y, hover, percent)


def _make_level(y: float) -> dict[str, Any]:
    drawn = {"color": "@muted", "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": drawn, "layer": "below"}
