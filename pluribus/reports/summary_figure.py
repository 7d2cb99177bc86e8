"""The static figure of a comparison for a README: what each method is worth against what its predictions cost."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .figures.cost import read_network_line
from .figures.traces import find_pareto_front
from .label_placement import Box, arrange_labels
from .palette import LIGHT, MARKERS, THEMES, method_style
from .table_columns import COSTS, EQUIVALENTS, SHARE, Column, select_columns
from .values import LOWEST_SHARE, Value, format_estimate, join_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID = (THEMES["light"][name] for name in ("ink", "muted", "grid"))
Point = tuple[int, str, Value, Value]
PLACES = [(10, 0, "left", "center"), (-10, 0, "right", "center"), (8, 7, "left", "bottom"), (-8, 7, "right", "bottom")]
PLACES += [(8, -7, "left", "top"), (-8, -7, "right", "top"), (0, 12, "center", "bottom"), (0, -12, "center", "top")]
PLACES += [(far, dy, "left", "center") for far in (18, 30, 45) for dy in (14, -14, 28, -28, 42, -42, 60, -60)]
PLACES += [(-far, dy, "right", "center") for far in (18, 30, 45) for dy in (14, -14, 28, -28, 42, -42, 60, -60)]
"""Places of a label relative to its point (x, y, horizontal and vertical alignment), the preferred first."""
ALONG = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}


def write_summary_figure(results: dict[str, Any], path: Path) -> None:
    """Write the figure as SVG or PNG, by the suffix of `path`. The same results give the same bytes.

    The y axis are the deep-ensemble equivalents; without them the share of the deep ensemble's gain, or the NLL if no method
    has a share. The x axis is the latency, or another cost if it was not measured.

    Raises:
        ValueError: `path` has another suffix.
        ImportError: matplotlib is not installed.
    """
    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"the figure must be an .svg or a .png, got {path.name}: rename it")
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("the figure needs matplotlib: pip install matplotlib") from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The user's own style and the clock must not show in the figure.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "pluribus", "font.size": 10, "axes.edgecolor": MUTED, "text.color": INK})
        figure = Figure(facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        draw_gain_against_cost(figure, results, title=str(results.get("title") or "Comparison"))
        nothing = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, dpi=160, metadata=nothing)


def draw_gain_against_cost(figure: "Figure", results: dict[str, Any], title: str) -> None:
    """Draw one point a method on an empty figure, with its name beside it; `write_summary_figure` says of what."""
    figure.set_size_inches(9, 5.6)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", parse_math=False)
    score, cost = _choose_axes(results)
    points = _read_points(results, cost, score) if score and cost else []
    far = [name for _, name, _, y in points if score is SHARE and y.value < LOWEST_SHARE]
    points = [point for point in points if point[1] not in far]
    if not points or score is None or cost is None:
        axes.text(0.5, 0.5, "No method has both a score and a cost.", ha="center", color=MUTED)
        axes.set_axis_off()
        return
    factor = 100 if score.kind == "share" else 1
    kept = find_pareto_front([x.value for _, _, x, _ in points], [score.loss(y.value) for *_, y in points])
    for index, _, x, y in points:
        look = method_style(index)
        colour = LIGHT[look.colour]
        bars: dict[str, Any] = {
            "xerr": _error_bar(x, 1),
            "yerr": _error_bar(y, factor),
            "ecolor": colour,
            "elinewidth": 1,
            "capsize": 2,
        }
        face = "white" if look.open else colour
        axes.errorbar(
            x.value,
            y.value * factor,
            fmt=MARKERS[look.shape],
            color=colour,
            markerfacecolor=face,
            markersize=8,
            zorder=3,
            **bars,
        )
    line = read_network_line(results) if score is EQUIVALENTS and cost is COSTS[0] else []
    if line:
        axes.plot([x for x, _ in line], [size for _, size in line], color=MUTED, linewidth=1.4, marker=".", zorder=1)
    _set_ticks(axes, [x.value for _, _, x, _ in points] + [x for x, _ in line])
    right = axes.get_xlim()[1]
    xs, ys = [points[k][2].value for k in kept], [points[k][3].value * factor for k in kept]
    if score is not EQUIVALENTS:
        axes.step([*xs, right], [*ys, ys[-1]], where="post", color=MUTED, linewidth=1, linestyle=":", zorder=1)
    axes.set_xlim(right=right)
    if score is EQUIVALENTS:
        most = max(y.limits[1] for *_, y in points)
        axes.set_ylim(0.6, most + 0.4)
        axes.set_yticks(range(1, round(most) + 1, max(round(most) // 8, 1)))
        axes.set_ylabel("independent networks that answer as well")
    elif score.kind == "share":
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, 100 * LOWEST_SHARE - 8), min(high, 308))  # longer error bars are cut off
        axes.set_ylabel("share of the deep ensemble's NLL gain, %")
        for level in (0, 100):
            axes.axhline(level, color=GRID, linewidth=1, zorder=0)
    else:
        axes.set_ylabel(f"{score.title}, nats (lower is better)")
    axes.set_xlabel(cost.about.replace("time of one answer", "latency"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=MUTED)
    has_intervals = any(y.low is not None for *_, y in points)
    caption = (
        "Bars: 95 % intervals. "
        if has_intervals
        else "Bars: one standard deviation over seeds. "
        if any(y.std for *_, y in points)
        else ""
    )
    if score is EQUIVALENTS:
        caption += "Line: what that many networks cost; a method above it is better than paying for networks." if line else ""
    else:
        caption += "Dotted: not beaten by a cheaper method in the mean."
    caption += f" Not shown, far below: {join_words(far)}." if far else ""
    figure.supxlabel(caption, fontsize=8, color=MUTED, x=0.01, ha="left", parse_math=False)
    steps = [] if score is EQUIVALENTS else list(zip([*xs, right], [*ys, ys[-1]], strict=True))
    _draw_labels(figure, axes, points, factor, steps)


def _choose_axes(results: dict[str, Any]) -> tuple[Column | None, Column | None]:
    """Return the first pair of score and cost that two methods or more have, else the first that any has."""
    nll = [column for column in select_columns(results) if column.key in ("calibrated_nll", "nll")]
    pairs = [(score, cost) for score in (EQUIVALENTS, SHARE, *nll) for cost in COSTS]
    for least in (2, 1):
        for score, cost in pairs:
            if len(_read_points(results, cost, score)) >= least:
                return score, cost
    return None, None


def _read_points(results: dict[str, Any], cost: Column, score: Column) -> list[Point]:
    found = ((i, str(m["name"]), cost.read(m), score.read(m)) for i, m in enumerate(results["methods"]))
    return [(i, name, x, y) for i, name, x, y in found if x is not None and y is not None]


def _error_bar(v: Value, factor: float) -> list[list[float]] | None:
    if v.reach is None:
        return None
    return [[max(0.0, v.value - v.reach[0]) * factor], [max(0.0, v.reach[1] - v.value) * factor]]


def _set_ticks(axes: "Axes", values: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    if min(values) > 0 and max(values) / min(values) >= 3:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    # This leaves room for the names on the right.
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.12 if axes.get_xscale() == "log" else high + 0.15 * (high - low))


def _draw_labels(figure: "Figure", axes: "Axes", points: list[Point], factor: float, steps: list[tuple[float, float]]) -> None:
    """Draw the names beside their points. A thin line leads from a point to a name that is further away."""
    from matplotlib.patheffects import withStroke

    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # the position of the axes is needed below
    scale = figure.dpi / 72

    def pixel(x: float, y: float) -> tuple[float, float]:
        px, py = axes.transData.transform((x, y * factor))
        return float(px), float(py)

    names, choices = [], []
    marks: list[Box] = []
    taken = [(*pixel(x, y / factor), *pixel(following, y / factor)) for (x, y), (following, _) in itertools.pairwise(steps)]
    for _, name, x, y in points:
        at = (x.value, y.value * factor)
        label = f"{name} ({format_estimate(y, 'equivalents')})" if y.beyond else name
        text = axes.annotate(label, at, xytext=(0, 0), textcoords="offset points", fontsize=8, parse_math=False, zorder=4)
        text.set(in_layout=False, path_effects=[withStroke(linewidth=2.5, foreground="white")])
        names.append(text)
        px, py = pixel(x.value, y.value)
        (left, right), (low, high) = x.reach or (x.value, x.value), y.reach or (y.value, y.value)
        marks.append((px - 20, py - 14, px + 20, py + 14))
        taken.append((px - 7, py - 7, px + 7, py + 7))
        taken.append((pixel(left, y.value)[0], py - 2, pixel(right, y.value)[0], py + 2))
        taken.append((px - 2, pixel(x.value, low)[1], px + 2, pixel(x.value, high)[1]))
        size = text.get_window_extent()
        corners = [
            (px + dx * scale - ALONG[h] * size.width, py + dy * scale - ALONG[v] * size.height) for dx, dy, h, v in PLACES
        ]
        choices.append([(left, low, left + size.width, low + size.height) for left, low in corners])
    room = (axes.bbox.x0, axes.bbox.y0, figure.bbox.x1 - 4, axes.bbox.y1)
    for text, place in zip(names, arrange_labels(choices, marks, taken, room), strict=True):
        dx, dy, across, along = PLACES[place]
        text.set(position=(dx, dy), ha=across, va=along)
        if max(abs(dx), abs(dy)) > 15:
            leader = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 5}
            drawn = axes.annotate("", text.xy, xytext=(dx, dy), textcoords="offset points", arrowprops=leader, zorder=2)
            drawn.set_in_layout(False)
