"""The learning curves: the validation score of every method after each epoch."""

from typing import Any

from ..palette import method_style
from ..values import Value, format_value, read_series, read_value
from .traces import Figure, Numbers, Panel, Trace, View, axis_title, describe_range, make_layout, make_line, make_marker

SCORES = {"calibrated_nll": "calibrated NLL", "nll": "NLL", "pinball": "pinball loss", "rmse": "RMSE"}
STILL = "arrow-down"
"""The mark of a run that was still improving: no method has this symbol."""


def make_learning_figure(results: dict[str, Any]) -> Figure | None:
    """Return the figure with a line for each method, the mean over its seeds, and thin lines for several seeds.

    An arrow stands at the end of runs that were still improving when they were stopped.
    """
    found = [(i, method, _list_curves(method)) for i, method in enumerate(results["methods"])]
    found = [(i, method, curves) for i, method, curves in found if curves]
    if not found:
        return None
    score = found[0][1]["training"]["score"]
    found = [each for each in found if each[1]["training"]["score"] == score]
    name = SCORES.get(score, score)
    data: list[Trace] = []
    rows, last = [], []
    for index, method, curves in found:
        epochs, means = _average(curves)
        if len(curves) > 1:
            data += [_make_seed_line(index, method["name"], curve) for curve in curves]
        data.append(make_line(index, method["name"], epochs, means, f"epoch %{{x}}: {name} %{{y:.4f}}", 0))
        data += [_make_end(index, method["name"], curve) for curve in curves if curve["still_improving"]]
        end = means[-1] if means else None
        last.append((method["name"], None if end is None else Value(end)))
        rows.append(_describe_row(method, curves, end))
    positive = all(y > 0 for trace in data for y in trace["y"] if y is not None)
    title = f"{name} of the validation rows"
    still = any(curve["still_improving"] for _, _, curves in found for curve in curves)
    layout = make_layout(title, {"title": axis_title("epochs")}, {"type": "log", "nticks": 6} if positive else {})
    several = any(len(curves) > 1 for _, _, curves in found)
    return Figure(
        "learning",
        "Learning curves",
        f"The {name} of the validation rows after each epoch of training; lower is better."
        + (" Thin lines are single seeds, thick ones their mean, up to the epoch that all seeds have." if several else "")
        + (" An arrow marks a run whose score was still improving when it was stopped: it needs more epochs." if still else ""),
        [Panel([View(f"Line plot by epoch, {title}: at the end {describe_range(last, 'score')}.", data, layout)], height=380)],
        [Numbers(["method", "epochs", "learning rate fell after", f"{name} at the end", "still improving"], rows)],
        key=[index for index, _, _ in found],
    )


def _list_curves(method: dict[str, Any]) -> list[dict[str, Any]]:
    """The learning curves of a method that have a point; scores that are not finite are None."""
    curves = []
    for curve in (method.get("training") or {}).get("curves") or []:
        scores = read_series(curve.get("scores"))
        if scores and any(score is not None for score in scores):
            curves.append(curve | {"scores": scores})
    return curves


def _average(curves: list[dict[str, Any]]) -> tuple[list[int], list[float]]:
    """The epochs at which all curves have a score, and the mean of it."""
    points = [
        {epoch: y for epoch, y in zip(curve["epochs"], curve["scores"], strict=True) if y is not None} for curve in curves
    ]
    shared = [epoch for epoch in points[0] if all(epoch in each for each in points)]
    return shared, [sum(each[epoch] for each in points) / len(points) for epoch in shared]


def _make_seed_line(index: int, name: str, curve: dict[str, Any]) -> Trace:
    trace = make_line(index, name, curve["epochs"], curve["scores"], "", 0)
    trace["line"] |= {"width": 1}
    del trace["hovertemplate"]
    return trace | {"opacity": 0.35, "hoverinfo": "skip"}


def _make_end(index: int, name: str, curve: dict[str, Any]) -> Trace:
    """The mark of a run that was still improving when it was stopped."""
    place = max(i for i, score in enumerate(curve["scores"]) if score is not None)
    text = f"seed {curve['seed']} was still improving after %{{x}} epochs"
    trace = make_line(index, name, [curve["epochs"][place]], [curve["scores"][place]], text)
    marker = make_marker(index, 12) | {"symbol": STILL, "color": method_style(index).token}
    return trace | {"mode": "markers", "marker": marker}


def _describe_row(method: dict[str, Any], curves: list[dict[str, Any]], end: float | None) -> list[str]:
    epochs = read_value(method, "training", "epochs")
    fell = [curve["decay_from"] for curve in curves if curve["decay_from"] is not None]
    still = [curve["still_improving"] for curve in curves if curve["still_improving"] is not None]
    return [
        method["name"],
        f"{epochs.value:g}" if epochs else "–",
        "–" if not fell else f"{min(fell):g}" if min(fell) == max(fell) else f"{min(fell):g} to {max(fell):g}",
        format_value(end, "score"),
        "not known"
        if not still
        else "no"
        if not any(still)
        else "yes"
        if all(still)
        else f"{sum(still)} of {len(still)} seeds",
    ]
