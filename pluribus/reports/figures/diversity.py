"""The figure on the diversity of members."""

from typing import Any

from ..table_columns import is_regression
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
    make_guide,
    make_layout,
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
