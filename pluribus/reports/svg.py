"""Static figures as SVG: nothing of the user's own style or of the clock shows, so the same results give the same bytes."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .palette import LIGHT, MARKERS, THEMES, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID = (THEMES["light"][name] for name in ("ink", "muted", "grid"))
DASHES = ("-", "--", "-.", ":")


def draw_svg(draw: Callable[["Figure"], None]) -> bytes:
    """What `draw` puts on an empty figure."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("the figures need matplotlib: pip install matplotlib") from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "pluribus", "font.size": 10, "axes.edgecolor": MUTED, "text.color": INK})
        figure = Figure(facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def marker_style(index: int) -> dict[str, Any]:
    """Of the marks of a series: colour and symbol, the same for the same place everywhere."""
    chosen = method_style(index)
    colour = LIGHT[chosen.colour]
    return {"color": colour, "marker": MARKERS[chosen.shape], "markerfacecolor": "white" if chosen.open else colour}


def line_style(index: int) -> dict[str, Any]:
    """Of a series drawn as a line: colours differ, and dashes too, for those who cannot tell the colours apart."""
    dash = (index + index // len(LIGHT)) % len(DASHES)
    return {"color": LIGHT[method_style(index).colour], "linestyle": DASHES[dash], "linewidth": 1.8}


def style_axes(axes: "Axes", grid: bool = True) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=MUTED)
    if grid:
        axes.grid(color=GRID, linewidth=1)
        axes.set_axisbelow(True)
