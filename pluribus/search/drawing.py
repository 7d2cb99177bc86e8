"""A cell drawn as a graph: nodes in a row, and an arrow for every operation that is not `none`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..reports.svg import INK, draw_svg, line_style
from .cells import Cell
from .found_cell import FoundCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ABSENT, SKIP = "none", "skip_connect"
"""Names of operations: the first is not drawn, the second is dashed."""
DISTANCE, RADIUS = 2.2, 0.24
"""Between two nodes, and of a node, in inches."""
RISE = 0.36
"""How much higher an arc is for each node that it passes."""


def draw_cell(cell: Cell | FoundCell) -> bytes:
    """Return an SVG of the cell. Operations have a colour each, and skip connections are dashed.

    Raises:
        ImportError: matplotlib is not installed.

    >>> draw_cell(Cell.parse("|nor_conv_3x3~0|+|none~0|skip_connect~1|"))[:5]
    b'<?xml'
    """
    plain = cell.cell if isinstance(cell, FoundCell) else cell
    return draw_svg(lambda figure: _draw(figure, plain))


def _draw(figure: "Figure", cell: Cell) -> None:
    figure.set_layout_engine("none")  # an inch on the paper is one on the axes
    axes = figure.add_axes((0, 0, 1, 1))
    figure.set_size_inches(*draw_on_axes(axes, cell))


def draw_on_axes(axes: "Axes", cell: Cell, names: Sequence[str] = ()) -> tuple[float, float]:
    """Draw the cell on axes of any figure, and return the width and the height in inches at which texts fit.

    `names` are operations in the order of their colours, where several cells shall have the same; without them, the cell's own.
    """
    from matplotlib.patches import Circle

    nodes, names = cell.graph.nodes, list(names) or sorted(set(cell.operations) - {ABSENT})
    edges = [edge for edge in cell.list_edges() if edge[2] != ABSENT]
    axes.set_axis_off()
    axes.set_aspect("equal")
    heights = [_compute_height(source, target) for source, target, _ in edges]
    low, high = min([0, *heights]) - 2 * RADIUS, max([0, *heights]) + 2 * RADIUS
    for (source, target, name), height in zip(edges, heights, strict=True):
        _draw_edge(axes, source * DISTANCE, target * DISTANCE, height, name, names.index(name))
    for node in range(nodes):
        label = "in" if node == 0 else "out" if node == nodes - 1 else str(node)
        axes.add_patch(Circle((node * DISTANCE, 0), RADIUS, facecolor="white", edgecolor=INK, zorder=3))
        axes.text(node * DISTANCE, 0, label, ha="center", va="center", color=INK, zorder=4)
    left, right = -2 * RADIUS, (nodes - 1) * DISTANCE + 2 * RADIUS
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    return right - left, high - low


def _compute_height(source: int, target: int) -> float:
    """Edges between neighbours are straight; others pass above the nodes, or from odd nodes below, the longer the further."""
    return RISE * (target - source) * (-1 if source % 2 else 1) if target - source > 1 else 0.0


def _draw_edge(axes: "Axes", start: float, end: float, height: float, name: str, index: int) -> None:
    """Draw an arrow with a label in its middle, which is `height` above the nodes."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    # A parabola through the middle has its control point at twice the height. The ends are on the circles of the nodes.
    control = (end - start) / 2, 2 * height
    length = (control[0] ** 2 + control[1] ** 2) ** 0.5
    x, y = (RADIUS * part / length for part in control)
    curve = Path([(start + x, y), ((start + end) / 2, 2 * height), (end - x, y)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    style = line_style(index) | {"linestyle": "--" if name == SKIP else "-"}
    axes.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=14, fill=False, **style))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    middle = height + y / 2  # of the parabola whose ends are higher by y
    axes.text((start + end) / 2, middle, name, ha="center", va="center", fontsize=8, color=style["color"], bbox=box, zorder=2.5)
