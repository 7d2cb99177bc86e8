"""One colour, one symbol and one dash for each method, the same in every figure, for light and dark pages.

The eight colours were found by search: each has a contrast of at least 3 with its background, and any two differ by at least
0.11 in Oklab for normal sight, protanopia, deuteranopia and tritanopia. No sixteen colours do, so that methods from the ninth
on have the same colours with open symbols and dotted lines.
"""

from typing import Any, NamedTuple

LIGHT = ("#0f92f9", "#9e4401", "#378671", "#421098", "#b28a0c", "#4d1e47", "#015a76", "#770c01")
DARK = ("#5da6ff", "#eeab7d", "#267863", "#8850c2", "#eae641", "#b983ac", "#91e9f0", "#cc2b0b")
SHAPES = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
MARKERS = ("o", "s", "D", "^", "X", "v", "*", "P")
PATHS = (
    "M5.5 0A5.5 5.5 0 1 1-5.5 0A5.5 5.5 0 1 1 5.5 0Z",
    "M-5-5H5V5H-5Z",
    "M0-6.5 6.5 0 0 6.5-6.5 0Z",
    "M0-6 6 5H-6Z",
    "M-3-6 0-3 3-6 6-3 3 0 6 3 3 6 0 3-3 6-6 3-3 0-6-3Z",
    "M0 6 6-5H-6Z",
    "M0-7 1.8-2.3 6.7-2.2 2.9.9 4.1 5.7 0 3-4.1 5.7-2.9.9-6.7-2.2-1.8-2.3Z",
    "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
)
THEMES = {
    "light": {
        "paper": "#ffffff",
        "panel": "#f6f7f9",
        "ink": "#1b1f24",
        "muted": "#5c6570",
        "rule": "#d5dae0",
        "grid": "#e6e9ed",
        "accent": "#0b5cad",
        "mild": "#e8f1fb",
    },
    "dark": {
        "paper": "#15181c",
        "panel": "#1d2126",
        "ink": "#e8ebee",
        "muted": "#a2abb5",
        "rule": "#3a4149",
        "grid": "#2b3138",
        "accent": "#7db8f5",
        "mild": "#1b2b3c",
    },
}


class Style(NamedTuple):
    """How a method is drawn. `colour` is an index into LIGHT and DARK, `shape` one into SHAPES, MARKERS and PATHS."""

    colour: int
    shape: int
    open: bool

    @property
    def token(self) -> str:
        """The placeholder of the colour in a figure; the page replaces it when it knows whether it is light or dark."""
        return f"@{self.colour}"

    @property
    def symbol(self) -> str:
        return SHAPES[self.shape] + ("-open" if self.open else "")

    @property
    def dash(self) -> str:
        return "dot" if self.open else "solid"


def method_style(index: int) -> Style:
    """Return the style of the method in row `index` of the table. No two of the first 64 are the same."""
    turn, colour = divmod(index, 8)
    return Style(colour, (colour + turn // 2) % 8, turn % 2 == 1)


def list_themes() -> dict[str, dict[str, str]]:
    """Return the colours of both modes by the names that figures use: `@ink` is "ink", `@3` is "3"."""
    colours: dict[str, Any] = {"light": LIGHT, "dark": DARK}
    return {mode: names | {str(i): colour for i, colour in enumerate(colours[mode])} for mode, names in THEMES.items()}
