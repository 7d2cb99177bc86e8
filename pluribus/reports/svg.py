"""Static figures as SVG. They ignore the user's matplotlib style and the clock: the same results give the same bytes."""

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
    """Return the SVG of what `draw` draws on an empty figure.

    Raises:
        ImportError: matplotlib is not installed.
    """
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
    """Return the colour and symbol of a series of points, the same for the same index in every figure."""
    chosen = method_style(index)
    colour = LIGHT[chosen.colour]
    return {"color": colour, "marker": MARKERS[chosen.shape], "markerfacecolor": "white" if chosen.open else colour}


def line_style(index: int) -> dict[str, Any]:
    """Return the colour and dashes of a series of lines. Dashes differ, too, for readers who cannot distinguish the colours."""
    dash = (index + index // len(LIGHT)) % len(DASHES)
    return {"color": LIGHT[method_style(index).colour], "linestyle": DASHES[dash], "linewidth": 1.8}


def style_axes(axes: "Axes", grid: bool = True) -> None:
    """Remove the frame at the top and on the right, and draw a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=MUTED)
    if grid:
        axes.grid(color=GRID, linewidth=1)
        axes.set_axisbelow(True)
