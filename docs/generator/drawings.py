"""A small drawing of each method: what members share is grey, a member's own has its colour, and noise is dashed."""

from collections.abc import Callable
from html import escape
from itertools import pairwise

COLOURS = ("#0f8a83", "#c2620e", "#7d4fb3")
"""Of three members."""
ROWS = (30, 80, 130)
MIDDLE = ROWS[1]


class Drawing:
    """Boxes with text and arrows between them, 480 by 160."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def box(
        self, text: str, x: float, y: float, colour: str = "", is_drawn: bool = False, width: float = 56
    ) -> tuple[float, float, float]:
        """A box about a point; returns the point and half of the width, to draw arrows from and to."""
        stroke, dash = colour or "currentColor", ' stroke-dasharray="4 3"' if is_drawn else ""
        fill = f'fill="{colour}" fill-opacity="0.15"' if colour else 'fill="currentColor" fill-opacity="0.08"'
        self.parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - 15:g}" width="{width:g}" height="30" rx="4" {fill} stroke="{stroke}"{dash}/>'
        )
        self.text(text, x, y)
        return x, y, width / 2

    def text(self, text: str, x: float, y: float) -> tuple[float, float, float]:
        self.parts.append(f'<text x="{x:g}" y="{y + 4.5:g}" text-anchor="middle" fill="currentColor">{escape(text)}</text>')
        return x, y, 10

    def link(self, *places: tuple[float, float, float], colour: str = "") -> None:
        """Arrows along a row of places, from the right side of each to the left side of the next."""
        for (x1, y1, half1), (x2, y2, half2) in pairwise(places):
            self.parts.append(
                f'<line x1="{x1 + half1 + 2:g}" y1="{y1:g}" x2="{x2 - half2 - 3:g}" y2="{y2:g}" '
                f'stroke="{colour or "currentColor"}" marker-end="url(#tip)"/>'
            )

    def answers(self, sources: list[tuple[float, float, float]], x: float = 455) -> None:
        """An answer of each member."""
        for source, colour, y, sign in zip(sources, COLOURS, ROWS, "₁₂₃", strict=True):
            self.link(source, self.text(f"y{sign}", x, y), colour=colour)

    def format(self, title: str) -> str:
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
        )
        head = f'<svg class="drawing" viewBox="0 0 480 160" role="img" aria-label="{escape(title)}" font-size="13">'
        return f"{head}{tip}{''.join(self.parts)}</svg>"


def draw_single(d: Drawing) -> None:
    d.link(
        d.text("x", 25, MIDDLE),
        d.box("layer", 130, MIDDLE),
        d.box("layer", 250, MIDDLE),
        d.box("layer", 370, MIDDLE),
        d.text("y", 455, MIDDLE),
    )


def draw_copies(d: Drawing, join: str) -> None:
    """Copies of a layer whose responses are joined to one."""
    x, joined = d.text("x", 25, MIDDLE), d.box(join, 255, MIDDLE)
    for y, colour, sign in zip(ROWS, COLOURS, "₁₂₃", strict=True):
        copy = d.box(f"w{sign}", 140, y, colour)
        d.link(x, copy, colour=colour)
        d.link(copy, joined, colour=colour)
    d.link(joined, d.box("layer", 370, MIDDLE), d.text("y", 455, MIDDLE))


def draw_tree(d: Drawing, shared: int, own: list[tuple[str, bool]]) -> None:
    """Layers that members share, and then some of their own: texts, and whether they are noise."""
    count = shared + len(own)
    places = [105 + step * 270 / (count - 1) for step in range(count)]
    trunk = [d.text("x", 25, MIDDLE), *(d.box("layer", place, MIDDLE) for place in places[:shared])]
    d.link(*trunk)
    ends = []
    for y, colour in zip(ROWS, COLOURS, strict=True):
        row = [d.box(text, place, y, colour, noisy) for (text, noisy), place in zip(own, places[shared:], strict=True)]
        d.link(trunk[-1], *row, colour=colour)
        ends.append(row[-1])
    d.answers(ends)


def draw_mimo(d: Drawing) -> None:
    body = d.box("shared layers", 245, MIDDLE, width=110)
    heads = []
    for y, colour, sign in zip(ROWS, COLOURS, "₁₂₃", strict=True):
        d.link(d.text(f"x{sign}", 25, y), d.box(f"W{sign}", 110, y, colour), body, colour=colour)
        heads.append(d.box(f"V{sign}", 375, y, colour))
        d.link(body, heads[-1], colour=colour)
    d.answers(heads)


def draw_factors(d: Drawing) -> None:
    x, shared = d.text("x", 25, MIDDLE), d.box("W", 240, MIDDLE)
    ends = []
    for y, colour, sign in zip(ROWS, COLOURS, "₁₂₃", strict=True):
        d.link(x, d.box(f"∘ r{sign}", 125, y, colour), shared, colour=colour)
        ends.append(d.box(f"∘ s{sign}", 355, y, colour))
        d.link(shared, ends[-1], colour=colour)
    d.answers(ends)


def draw_additions(d: Drawing) -> None:
    x, shared = d.text("x", 25, MIDDLE), d.box("W", 240, MIDDLE)
    d.link(x, shared)
    ends = []
    for y, colour, sign in zip(ROWS, COLOURS, "₁₂₃", strict=True):
        added = d.box(f"+ B{sign}A{sign}", 355, y, colour, width=80)
        d.link(shared, added, colour=colour)
        ends.append(added)
    d.answers(ends)


def draw_mixture(d: Drawing) -> None:
    templates = [d.box(f"T{sign}", 70, y) for y, sign in zip(ROWS, "₁₂₃", strict=True)]
    ends = []
    for y, colour, sign in zip(ROWS, COLOURS, "₁₂₃", strict=True):
        ends.append(d.box(f"Σ α{sign} T", 270, y, colour, width=90))
        for template in templates:
            d.link(template, ends[-1], colour=colour)
    d.answers(ends)


LAYER, NOISE = ("layer", False), ("μ + σ ε", True)
DRAWINGS: dict[str, tuple[str, Callable[[Drawing], None]]] = {
    "single": ("One network: each layer once", draw_single),
    "inner": ("Copies of a layer are averaged before the next layer", lambda d: draw_copies(d, "mean")),
    "maxout": ("The largest response of several copies of a layer", lambda d: draw_copies(d, "max")),
    "variance": ("A late layer has random weights", lambda d: draw_tree(d, 2, [("σ ε", True), LAYER])),
    "variational-dropout": ("Every layer has learnt noise", lambda d: draw_tree(d, 0, [NOISE, NOISE, NOISE])),
    "mc-dropout": ("What follows the dropout runs for each mask", lambda d: draw_tree(d, 2, [("mask", True), LAYER])),
    "multihead": ("Shared layers and three last layers", lambda d: draw_tree(d, 2, [("head", False)])),
    "mimo": ("Three inputs and three outputs around shared layers", draw_mimo),
    "treenet": ("A shared trunk and three branches", lambda d: draw_tree(d, 1, [LAYER, LAYER])),
    "batch-ensemble": ("One shared weight between factors of each member", draw_factors),
    "low-rank": ("One shared weight with an addition of each member", draw_additions),
    "mixture": ("The weights of each member are mixed from common templates", draw_mixture),
    "deep-ensemble": ("Three networks side by side", lambda d: draw_tree(d, 0, [LAYER, LAYER, LAYER])),
}
"""Titles and drawings by the name of the method."""


def draw_method(name: str) -> str:
    """The drawing of a method as SVG to stand in a page; nothing for a method that has none."""
    if name not in DRAWINGS:
        return ""
    title, draw = DRAWINGS[name]
    drawing = Drawing()
    draw(drawing)
    return drawing.format(title)
