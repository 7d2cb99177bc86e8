"""Two static figures: the cost of every method, and how costs grow. The same results give the same bytes."""

from typing import TYPE_CHECKING, Any

from ..core.spec import Spec, list_methods
from ..reports.palette import LIGHT, MARKERS, method_style
from ..reports.svg import MUTED, draw_svg, style_axes
from .networks import NETWORKS
from .table import TABLE_WORKLOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Json = dict[str, Any]


def draw_costs(results: Json) -> bytes:
    """Draw the time of every method on every network, as SVG."""
    return draw_svg(lambda figure: _draw_costs(figure, results["table"]))


def draw_growth(results: Json) -> bytes:
    """Draw time against M and K with fitted lines, as SVG."""
    return draw_svg(lambda figure: _draw_growth(figure, results["growth"]))


def _draw_costs(figure: "Figure", rows: list[Json]) -> None:
    methods = list_methods({row["method"] for row in rows})
    networks = [network for network in NETWORKS if any(row["network"] == network for row in rows)]
    figure.set_size_inches(9, 1.6 + 0.36 * len(methods))
    panels = figure.subplots(1, len(TABLE_WORKLOADS), sharey=True, squeeze=False)[0]
    for axes, work in zip(panels, TABLE_WORKLOADS, strict=True):
        for index, network in enumerate(networks):
            own = [row for row in rows if (row["network"], row["work"]) == (network, work)]
            # Networks stand side by side, so that equal times do not cover one another.
            shift = 0.14 * (index - (len(networks) - 1) / 2)
            places = [methods.index(row["method"]) + shift for row in own]
            times = [row["time"] for row in own]
            label, look = NETWORKS[network].title if axes is panels[0] else None, _get_look(list(NETWORKS).index(network))
            axes.errorbar([t["median"] for t in times], places, xerr=_compute_error_bars(times), label=label, **look)
        axes.axvline(1, color=MUTED, linewidth=1, linestyle=":", zorder=0)
        _scale_by_doubling(axes)
        axes.set_title(work, loc="left", fontsize=11)
        axes.set_xlabel("time, × the base network")
        style_axes(axes, grid=False)
    panels[0].set_yticks(range(len(methods)), methods)
    panels[0].invert_yaxis()
    _add_legend(figure)


def _draw_growth(figure: "Figure", rows: list[Json]) -> None:
    networks = [network for network in NETWORKS if any(row["network"] == network for row in rows)]
    kinds = list(dict.fromkeys((row["axis"], row["work"]) for row in rows))
    figure.set_size_inches(4.2 * len(kinds), 0.8 + 3.4 * len(networks))
    panels = figure.subplots(len(networks), len(kinds), squeeze=False)
    labelled: set[str] = set()
    for place, network in enumerate(networks):
        for axes, (axis, work) in zip(panels[place], kinds, strict=True):
            for row in rows:
                if (row["network"], row["axis"], row["work"]) == (network, axis, work):
                    _draw_line(axes, row, None if row["method"] in labelled else row["method"])
                    labelled.add(row["method"])
            axes.set_title(f"{NETWORKS[network].title}, {work}", loc="left", fontsize=11)
            axes.set_xlabel("members or copies, M" if axis == "M" else "draws, K")
            style_axes(axes)
        panels[place][0].set_ylabel("time, × the base network")
    _add_legend(figure)


def _draw_line(axes: "Axes", row: Json, label: str | None) -> None:
    look = _get_look(list_methods({*Spec.registry, row["method"]}).index(row["method"]))
    at, times = [point["at"] for point in row["points"]], [point["time"] for point in row["points"]]
    axes.errorbar(at, [time["median"] for time in times], yerr=_compute_error_bars(times), label=label, **look)
    line = row["lines"]["time"]
    ends = (at[0], at[-1])
    axes.plot(ends, [line["slope"] * end + line["intercept"] for end in ends], color=look["color"], linewidth=1, zorder=1)


def _get_look(index: int) -> dict[str, Any]:
    look = method_style(index)
    colour = LIGHT[look.colour]
    face = "white" if look.open else colour
    return {
        "fmt": MARKERS[look.shape],
        "color": colour,
        "markerfacecolor": face,
        "markersize": 6,
        "elinewidth": 1,
        "capsize": 2,
        "zorder": 3,
    }


def _compute_error_bars(times: list[Json]) -> list[list[float]]:
    """Return the distances of both quartiles from the median, `[2, N]`."""
    return [[time["median"] - time["low"] for time in times], [time["high"] - time["median"] for time in times]]


def _scale_by_doubling(axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))


def _add_legend(figure: "Figure") -> None:
    figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    figure.supxlabel("Bars: the middle half of the repeats.", fontsize=8, color=MUTED, x=0.01, ha="left")
