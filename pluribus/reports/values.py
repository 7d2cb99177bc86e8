"""Values out of the results, whatever shape they have there, and how they are written."""

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

Kind = Literal["percent", "share", "score", "small", "ratio", "count"]


LOWEST_SHARE = -1.0
"""A share of the gain below this says only that a method is far worse than one network; by how much, its NLL tells."""


class Value(NamedTuple):
    """A number or an interval of the results: where there is no spread, or none was drawn, it is None."""

    value: float
    std: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def reach(self) -> tuple[float, float] | None:
        """From where to where it may lie: its interval, else one standard deviation to either side."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return (self.value - self.std, self.value + self.std) if self.std is not None else None


def to_finite(x: Any) -> float | None:
    """A diverged run leaves NaN and ∞, which JSON has no word for: they count as not had."""
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) else None


def parse_value(x: Any) -> Value | None:
    """Of a number, an interval or a bare number."""
    if not isinstance(x, dict):
        bare = to_finite(x)
        return None if bare is None else Value(bare)
    middle = to_finite(x.get("mean", x.get("value")))
    if middle is None:
        return None
    # One seed has no spread, and a zero would look like certainty.
    std = to_finite(x.get("std")) if len(x.get("seeds") or (0, 0)) > 1 else None
    return Value(middle, std, to_finite(x.get("low")), to_finite(x.get("high")))


def get_nested(x: Any, *path: str) -> Any:
    """`x[path[0]][path[1]]…`, or None where the way ends."""
    for step in path:
        x = x.get(step) if isinstance(x, dict) else None
    return x


def read_value(method: dict[str, Any], *path: str) -> Value | None:
    return parse_value(get_nested(method, *path))


def read_series(x: Any) -> list[float | None]:
    return [to_finite(entry) for entry in x] if isinstance(x, list | tuple) else []


def format_value(x: float | None, kind: Kind, unit: bool = True) -> str:
    """As it stands in a cell (`unit=False`: the heading has it) or in a sentence."""
    if x is None:
        return "–"
    if kind == "percent":
        text = f"{100 * x:.2f}" + (" %" if unit else "")
    elif kind == "share":
        text = (f"{100 * x:.0f}" if x >= LOWEST_SHARE else f"< {100 * LOWEST_SHARE:.0f}") + (" %" if unit else "")
    elif kind == "score":
        text = f"{x:.4f}"
    elif kind == "small":
        text = f"{x:.4g}"
    elif kind == "count":
        text = f"{x:,.0f}"
    else:
        text = (f"{x:.2f}" if abs(x) < 9.995 else f"{x:.1f}" if abs(x) < 99.95 else f"{x:.0f}") + "×"
    # A rounded nothing has no sign; and a minus is longer than a hyphen.
    bare = text.lstrip("-")
    return bare if text[0] == "-" and not any(digit in bare for digit in "123456789") else text.replace("-", "−")


def format_spread(v: Value, kind: Kind) -> str:
    """What stands small beside a mean: "± 0.12" over seeds, else the interval."""

    def like(x: float) -> str:
        """With as many decimals as the mean itself."""
        decimals = format_value(v.value, kind).partition(".")[2]
        if kind != "small" or not decimals.isdigit():
            return format_value(x, kind, unit=False)
        return f"{x:.{len(decimals)}f}".replace("-", "−")

    if kind == "share" and v.value < LOWEST_SHARE:
        text = ""
    elif v.std is not None:
        text = f"± {like(v.std)}"
    elif v.low is not None and v.high is not None and v.low < v.high:
        text = f"{like(v.low)} to {like(v.high)}"
    else:
        text = ""  # also where it holds by definition: a deep ensemble has all of its own gain
    return text.replace("×", "")


def format_with_spread(v: Value, kind: Kind) -> str:
    """A value in running text: "83 % (61 to 97)"."""
    beside = format_spread(v, kind)
    return format_value(v.value, kind) + (f" ({beside})" if beside else "")


def join_words(words: Iterable[str]) -> str:
    """ "a, b and c"."""
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def format_count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
