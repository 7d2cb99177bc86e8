"""The parts that figures of the page are made of.

A figure is plain data: traces and layouts as plotly.js takes them, with `@ink` or `@3` in the place of colours, which the page
fills in when it knows whether it is light or dark.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..palette import method_style
from ..values import Kind, Value, format_value

Trace = dict[str, Any]
Layout = dict[str, Any]


@dataclass(frozen=True)
class View:
    """One state of a panel; `alt` describes it for screen readers."""

    alt: str
    data: list[Trace]
    layout: Layout


@dataclass(frozen=True)
class Panel:
    """One plot, with one view for each choice of its figure, or one for all. `labels`: names stand beside points."""

    views: list[View]
    height: int = 0
    labels: bool = False


@dataclass(frozen=True)
class Numbers:
    """A table with the numbers of a figure."""

    head: list[str]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure. `how` explains it; `choices` are the names of the views, `question` what is chosen; `key` are its methods."""

    name: str
    heading: str
    how: str
    panels: list[Panel]
    numbers: list[Numbers]
    arrangement: Literal["one", "two", "many"] = "one"
    question: str = ""
    choices: list[str] = field(default_factory=list)
    key: list[int] = field(default_factory=list)


def make_layout(title: str = "", x: Layout | None = None, y: Layout | None = None, **more: Any) -> Layout:
    """Return a layout. The title of the y axis is above the plot, where it takes no width from it on a phone."""
    axis = {"gridcolor": "@grid", "linecolor": "@rule", "zeroline": False, "automargin": True, "ticks": "", "fixedrange": False}
    made: Layout = {
        "xaxis": {**axis, "showline": True, **(x or {})},
        "yaxis": {**axis, **(y or {})},
        "font": {"color": "@ink", "size": 12},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"bgcolor": "@panel", "bordercolor": "@rule", "font": {"color": "@ink"}, "align": "left"},
        "margin": {"l": 48, "r": 14, "t": 34, "b": 44},
        "showlegend": False,
        "hovermode": "closest",
    }
    if title:
        made["title"] = {"text": title, "x": 0, "xanchor": "left", "xref": "container", "y": 1, "yanchor": "top"}
        made["title"] |= {"yref": "container", "pad": {"t": 8, "l": 4}, "font": {"size": 13, "color": "@muted"}}
    return made | more


def axis_title(title: str) -> Layout:
    """Return the layout of the title of an axis."""
    return {"text": title, "standoff": 8, "font": {"size": 13, "color": "@muted"}}


def escape_text(text: Any) -> str:
    """Escape a text for plotly, which reads some HTML in it."""
    return html.escape(str(text), quote=False)


def make_point(index: int, name: str, x: Value, y: Value, hover: str, percent: tuple[bool, bool]) -> Trace:
    """Return the trace of one method in a scatter plot, with error bars; `percent` tells which of x and y are shown in %."""
    look = method_style(index)
    factor_x, factor_y = (100 if flag else 1 for flag in percent)
    trace: Trace = {
        "type": "scatter",
        "mode": "markers",
        "name": escape_text(name),
        "meta": {"method": index},
        "x": [x.value * factor_x],
        "y": [y.value * factor_y],
        "marker": make_marker(index, 11),
        "hovertemplate": f"<b>%{{fullData.name}}</b><br>{hover}<extra></extra>",
    }
    for axis, v, factor in (("error_x", x, factor_x), ("error_y", y, factor_y)):
        if v.reach is not None:
            low, high = v.reach
            trace[axis] = {"type": "data", "symmetric": False, "thickness": 1.4, "color": look.token}
            trace[axis]["width"] = 3 if axis == "error_y" else 0
            trace[axis] |= {"array": [max(0.0, high - v.value) * factor], "arrayminus": [max(0.0, v.value - low) * factor]}
    return trace


def make_marker(index: int, size: int) -> Trace:
    """Return the marker of a method."""
    look = method_style(index)
    bigger = {"star": 3, "diamond": 0, "circle": 0, "square": -1}.get(look.symbol.removesuffix("-open"), 1)
    return {"symbol": look.symbol, "color": look.token, "size": size + bigger, "line": {"width": 2 if look.open else 0}}


def make_line(index: int, name: str, x: Sequence[Any], y: Sequence[Any], hover: str, size: int = 7, dash: str = "") -> Trace:
    look = method_style(index)
    return {
        "type": "scatter",
        "mode": "lines+markers" if size else "lines",
        "name": escape_text(name),
        "meta": {"method": index},
        "x": list(x),
        "y": list(y),
        "line": {"color": look.token, "width": 2, "dash": dash or look.dash},
        "marker": make_marker(index, size or 1),
        "hovertemplate": f"<b>%{{fullData.name}}</b><br>{hover}<extra></extra>",
    }


def make_guide(x: Sequence[Any], y: Sequence[Any], dash: str = "dash", shape: str = "linear", name: str = "") -> Trace:
    """Return the trace of a line that is no method: a diagonal, chance level or a Pareto front."""
    style_ = {"color": "@muted", "width": 1.4, "dash": dash, "shape": shape}
    return {"type": "scatter", "mode": "lines", "x": list(x), "y": list(y), "line": style_, "name": name, "hoverinfo": "skip"}


def make_cost_axis(values: Sequence[Value], title: str) -> Layout:
    """Return the axis of ratios: logarithmic if they differ by a factor of three or more, else linear."""
    ends = [end for v in values for end in (v.value, *(v.reach or ()))]
    low, high = min(ends), max(ends)
    if low > 0 and high / low >= 3:
        every = 2 if high / low < 80 else 4
        first, last = math.floor(math.log(low, every)), math.ceil(math.log(high, every))
        ticks = [float(every) ** power for power in range(first, last + 1)]
        reach = [math.log10(low) - 0.08, math.log10(high) + 0.12]
        texts = [f"{tick:g}×" for tick in ticks]
        return {"type": "log", "tickvals": ticks, "ticktext": texts, "range": reach, "title": axis_title(title)}
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1
    return {"ticksuffix": "×", "range": [low - room, high + room], "nticks": 6, "title": axis_title(title)}


def describe_error_bars(values: Sequence[Value | None]) -> str:
    """Return a sentence that says what the error bars of these values are."""
    known = [v for v in values if v is not None]
    drawn = sum(v.low is not None and v.high is not None for v in known)
    spreads = sum(v.reach is not None for v in known) - drawn
    if drawn and spreads:
        return "Bars are 95 % intervals where they are known, else one standard deviation over seeds to either side."
    if drawn:
        return "Bars are 95 % intervals; methods whose bars overlap cannot be distinguished."
    if spreads:
        return "Bars are one standard deviation over seeds to either side, not an interval."
    return "There is one seed, hence there are no bars: the spread by chance is unknown."


def describe_range(pairs: Sequence[tuple[str, Value | None]], kind: Kind) -> str:
    """Return the lowest and the highest value with their names, as in "from 91.20 % (single) to 97.31 % (inner)"."""
    known = [(name, v.value) for name, v in pairs if v is not None]
    if not known:
        return "no values"
    low, high = min(known, key=lambda pair: pair[1]), max(known, key=lambda pair: pair[1])
    if low == high or len(known) == 1:
        return f"{format_value(low[1], kind)} ({low[0]})"
    return f"from {format_value(low[1], kind)} ({low[0]}) to {format_value(high[1], kind)} ({high[0]})"


def find_pareto_front(costs: Sequence[float], losses: Sequence[float]) -> list[int]:
    """Return the indices of the points that no point of equal or lower cost beats, in the order of cost.

    >>> find_pareto_front([1.0, 2.0, 3.0], [0.5, 0.6, 0.3])
    [0, 2]
    """
    kept: list[int] = []
    for index in sorted(range(len(costs)), key=lambda i: (costs[i], losses[i])):
        if not kept or losses[index] < losses[kept[-1]]:
            kept.append(index)
    return kept
