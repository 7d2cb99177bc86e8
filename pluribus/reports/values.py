"""Reading numbers and intervals from the results, and formatting them."""

import math
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from ..core.texts import format_amount

Kind = Literal["percent", "share", "equivalents", "score", "small", "ratio", "count"]


LOWEST_SHARE = -1.0
"""Shares of the gain below this are shown as "less than": such a method is far worse than one network."""


class Value(NamedTuple):
    """A number or an interval of the results. `std`, `low` and `high` are None where they were not computed.

    `limits` are what the number can be. `beyond` is "<" or ">" if it is in truth beyond the lower or the upper limit.
    """

    value: float
    std: float | None = None
    low: float | None = None
    high: float | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)
    beyond: Literal["", "<", ">"] = ""

    @property
    def reach(self) -> tuple[float, float] | None:
        """The 95 % interval, or else one standard deviation to either side, within the limits; None if neither is known."""
        if self.low is not None and self.high is not None:
            low, high = self.low, self.high
        elif self.std is not None:
            low, high = self.value - self.std, self.value + self.std
        else:
            return None
        return max(low, self.limits[0]), min(high, self.limits[1])


def to_finite(x: Any) -> float | None:
    """Return a finite number, or None. A diverged run leaves NaN or ∞, which count as missing."""
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) else None


def parse_value(x: Any) -> Value | None:
    """Return the Value of a number, an interval or a bare float of the results, or None.

    >>> parse_value({"mean": 0.5, "std": 0.1, "seeds": [0.4, 0.6]})
    Value(value=0.5, std=0.1, low=None, high=None, limits=(-inf, inf), beyond='')
    """
    if not isinstance(x, dict):
        bare = to_finite(x)
        return None if bare is None else Value(bare)
    middle = to_finite(x.get("mean", x.get("value")))
    if middle is None:
        return None
    # The standard deviation of one seed is recorded as zero, which would look like certainty.
    std = to_finite(x.get("std")) if len(x.get("seeds") or (0, 0)) > 1 else None
    found = Value(middle, std, to_finite(x.get("low")), to_finite(x.get("high")))
    most = to_finite(x.get("most"))
    if most is None:
        return found
    return found._replace(limits=(1.0, most), beyond="<" if x.get("below") else ">" if x.get("above") else "")


def get_nested(x: Any, *path: str) -> Any:
    """Return `x[path[0]][path[1]]…`, or None if a key is missing."""
    for step in path:
        x = x.get(step) if isinstance(x, dict) else None
    return x


def read_value(method: dict[str, Any], *path: str) -> Value | None:
    """Return the Value at a path of keys, or None."""
    return parse_value(get_nested(method, *path))


def read_series(x: Any) -> list[float | None]:
    """Return a list of finite numbers, with None for what is missing."""
    return [to_finite(entry) for entry in x] if isinstance(x, list | tuple) else []


def format_value(x: float | None, kind: Kind, unit: bool = True) -> str:
    """Return a number as text, for a sentence, or without its unit for a cell of the table.

    >>> format_value(0.9876, "percent"), format_value(1.234, "ratio"), format_value(None, "score")
    ('98.76 %', '1.23×', '–')
    >>> format_value(1.23456, "small"), format_value(68211.4, "small")  # in the unit of a regression's target
    ('1.235', '68211')
    """
    if x is None:
        return "–"
    if kind == "percent":
        text = f"{100 * x:.2f}" + (" %" if unit else "")
    elif kind == "share":
        text = (f"{100 * x:.0f}" if x >= LOWEST_SHARE else f"< {100 * LOWEST_SHARE:.0f}") + (" %" if unit else "")
    elif kind == "equivalents":
        text = f"{x:.1f}"
    elif kind == "score":
        text = f"{x:.4f}"
    elif kind == "small":
        text = format_amount(x)
    elif kind == "count":
        text = f"{x:,.0f}"
    else:
        text = (f"{x:.2f}" if abs(x) < 9.995 else f"{x:.1f}" if abs(x) < 99.95 else f"{x:.0f}") + "×"
    # A value that rounds to zero gets no sign; a minus sign is longer than a hyphen.
    bare = text.lstrip("-")
    return bare if text[0] == "-" and not any(digit in bare for digit in "123456789") else text.replace("-", "−")


def format_estimate(v: Value, kind: Kind, unit: bool = True) -> str:
    """Return the number of a Value as text, as `format_value` does, or the limit that it is beyond.

    >>> format_estimate(Value(4.0, limits=(1.0, 4.0), beyond=">"), "equivalents")
    '> 4'
    """
    if v.beyond:
        return f"{v.beyond} {v.limits[v.beyond == '>']:g}"
    return format_value(v.value, kind, unit)


def format_spread(v: Value, kind: Kind) -> str:
    """Return "± 0.12" if the spread over seeds is known, else the interval, else an empty string."""
    if kind == "equivalents":
        bounds = [f"≤ {b:g}" if b <= v.limits[0] else f"≥ {b:g}" if b >= v.limits[1] else f"{b:.1f}" for b in v.reach or ()]
        return " to ".join(bounds) if len(set(bounds)) > 1 else ""

    def like(x: float) -> str:
        """Return `x` with as many decimals as the mean."""
        decimals = format_value(v.value, kind).partition(".")[2]
        if kind != "small" or not decimals.isdigit():
            return format_value(x, kind, unit=False)
        return f"{x:.{len(decimals)}f}".replace("-", "−")

    if kind == "share" and v.value < LOWEST_SHARE:
        text = ""
    elif v.std is not None:
        text = f"± {like(v.std)}"
    elif v.reach is not None and v.reach[0] < v.reach[1]:
        text = f"{like(v.reach[0])} to {like(v.reach[1])}"
    else:
        text = ""  # the share of the deep ensemble itself is 1 by definition
    return text.replace("×", "")


def format_with_spread(v: Value, kind: Kind) -> str:
    """Return a value with its spread, as in "83 % (61 to 97)"."""
    beside = format_spread(v, kind)
    return format_estimate(v, kind) + (f" ({beside})" if beside else "")


def join_words(words: Iterable[str]) -> str:
    """Return words as a list in a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def format_count(n: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    >>> format_count(1, "seed"), format_count(1200, "row")
    ('1 seed', '1,200 rows')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
