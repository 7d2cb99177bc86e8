"""Conditions under which the claims can be judged: they were measured, on enough seeds, by networks that have converged.

What was recorded before a condition was written lacks what it needs. The condition is then not met, and says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..recipe import Found, Json
from ..verdicts import Precondition, Verdict, format_percent
from .seeds import group_seeds

LEAST_SEEDS = 3
MOST_MOVED_BOUND = 0.01
"""By how much of itself the ELBO may move in the last tenth of a training that has converged."""
MOST_MOVED_LOG_ALPHA = 0.5
"""By how much the mean log α of a layer may move then. At full speed Adam could move it by 0.3 in the paper's last tenth."""
MOST_OFF_CONTROL = 1.0
"""How far the mean log α of a layer may end from where it ends if it is learnt twice as fast."""
MOST_BELOW_PAPER = 0.03
"""How far the network with dropout may be below the paper's, as a share of test rows."""
UNMEASURED = "was not measured when this was recorded"


def require(
    text: str, what: str, values: Mapping[str, float | None], is_met: Callable[[float], bool], show: Callable[[float], str]
) -> Precondition:
    """Return the condition that every value meets `is_met`.

    Args:
        text: the condition, for the page.
        what: what the values are, for the evidence.
        values: by name; None is one that was not measured, with which the condition is not met.
        is_met: whether a value meets the condition.
        show: formats a value.
    """
    if not values or None in values.values():
        return Precondition(text, f"{what} {UNMEASURED}", False)
    numbers = {name: value for name, value in values.items() if value is not None}
    seen = ", ".join(f"{name} {show(value)}" if name else show(value) for name, value in numbers.items())
    return Precondition(text, f"{what}: {seen}", all(is_met(value) for value in numbers.values()))


def require_seeds(found: Found, least: int = LEAST_SEEDS) -> Precondition:
    """The condition that every row was trained with enough seeds."""
    fewest = min(len(cells) for cells in group_seeds(found).values())
    return require(
        f"every network was trained with at least {least} seeds",
        "seeds of a network",
        {"": float(fewest)},
        lambda count: count >= least,
        "{:.0f}".format,
    )


def require_accuracy(title: str, least: float, values: Mapping[str, float | None]) -> Precondition:
    """The condition that networks are right on at least so many test rows."""
    return require(
        f"{title} right on at least {format_percent(least, 1)} of the test rows",
        "share of test rows on which they are right",
        values,
        lambda value: value >= least,
        format_percent,
    )


def require_base(found: Found, paper: float) -> Precondition:
    """The condition that the networks with dropout are near the paper's accuracy."""
    return require_accuracy(
        f"every network with dropout is within {100 * MOST_BELOW_PAPER:g} points of the paper's {format_percent(paper, 1)}:",
        paper - MOST_BELOW_PAPER,
        {"at least": _find_smallest(cell.get("base") for cell in found.values())},
    )


def require_same_end(pairs: Mapping[str, tuple[Mapping[int, Json], Mapping[int, Json]]]) -> Precondition:
    """The condition that log α ends where that of a control does, which learns it twice as fast; rows by seed."""
    return require(
        f"log α ends within {MOST_OFF_CONTROL:g} of a control that learns it twice as fast",
        "distance of log α from that of the control",
        {name: measure_distance(ours, control) for name, (ours, control) in pairs.items()},
        lambda value: value <= MOST_OFF_CONTROL,
        "{:.2f}".format,
    )


def measure_distance(ours: Mapping[int, Json], control: Mapping[int, Json]) -> float | None:
    """Return the largest distance of a layer's last log α from that of the control with the same seed; None if untracked."""
    distances: list[float | None] = []
    for seed in ours.keys() & control.keys():
        end, other = _take_last_log_alpha(ours[seed]), _take_last_log_alpha(control[seed])
        distances.append(None if end is None or other is None else max(abs(end[layer] - other[layer]) for layer in end))
    return _find_largest(distances)


def require_bound(rows: Mapping[str, Iterable[Json]]) -> Precondition:
    """The condition that the ELBO of every training has converged; the evidence is the largest move of every row."""
    return require(
        f"the last tenth of training moves no ELBO by more than {format_percent(MOST_MOVED_BOUND, 0)}",
        "move of the ELBO in the last tenth",
        {name: _find_largest(measure_bound_move(cell) for cell in cells) for name, cells in rows.items()},
        lambda value: value <= MOST_MOVED_BOUND,
        format_percent,
    )


def require_log_alpha(rows: Mapping[str, Iterable[Json]]) -> Precondition:
    """The condition that log α of every layer has converged."""
    return require(
        f"the last tenth of training moves the mean log α of no layer by more than {MOST_MOVED_LOG_ALPHA:g}",
        "move of log α in the last tenth",
        {name: _find_largest(measure_log_alpha_move(cell) for cell in cells) for name, cells in rows.items()},
        lambda value: value <= MOST_MOVED_LOG_ALPHA,
        "{:.2f}".format,
    )


def judge_under(verdicts: Iterable[Verdict], *conditions: Precondition) -> list[Verdict]:
    """Return verdicts judged only if all conditions are met; what was not run stays as it is."""
    whole = Precondition(
        ", and ".join(condition.text for condition in conditions),
        "; ".join(condition.evidence for condition in conditions if not condition.met),
        all(condition.met for condition in conditions),
    )
    return [verdict if verdict.outcome == "not run at this scale" else whole.judge(verdict) for verdict in verdicts]


def measure_bound_move(cell: Json) -> float | None:
    """Return by how much of itself the ELBO moved in the last tenth of training, or None if it was not tracked."""
    rows = cell.get("bounds")
    last, before = find_last_tenth(rows) if rows else (None, None)
    if last is None or before is None:
        return None
    ends = [row["data"] - row["kl"] for row in (before, last)]
    return abs(ends[1] - ends[0]) / max(abs(ends[1]), 1e-12)


def describe_trend(rows: Mapping[str, Sequence[Json]]) -> str:
    """Return the mean ELBO of every row nine tenths into the training and at its end, or "" where it was not tracked.

    >>> ends = [{"epoch": 9, "data": -30.0, "kl": 10.0}, {"epoch": 10, "data": -28.0, "kl": 9.0}]
    >>> describe_trend({"layer": [{"bounds": ends}], "weight": [{}]})
    'layer -40 to -37'
    """
    trends = []
    for name, cells in rows.items():
        ends = [find_last_tenth(cell["bounds"]) for cell in cells if cell.get("bounds")]
        pairs = [(before, last) for last, before in ends if last is not None and before is not None]
        if pairs:
            first, second = (sum(row["data"] - row["kl"] for row in side) / len(pairs) for side in zip(*pairs, strict=True))
            trends.append(f"{name} {first:,.0f} to {second:,.0f}")
    return ", ".join(trends)


def measure_log_alpha_move(cell: Json) -> float | None:
    """Return the largest move of a layer's mean log α in the last tenth of training, or None if it was not tracked.

    Phases have it after every epoch, bounds after every tenth of the training.
    """
    rows = cell.get("phases") or cell.get("bounds")
    last, before = find_last_tenth(rows) if rows else (None, None)
    if last is None or before is None or not last.get("log_alpha"):
        return None
    return max(abs(value - before["log_alpha"][layer]) for layer, value in last["log_alpha"].items())


def find_last_tenth(rows: Sequence[Json]) -> tuple[Json | None, Json | None]:
    """Return the last row, and the latest one that is at least a tenth of all epochs before it; None where there is none."""
    last = rows[-1]
    before = [row for row in rows if row["epoch"] <= 0.9 * last["epoch"] + 1e-9 and row["epoch"] > 0]
    return last, before[-1] if before else None


def _take_last_log_alpha(cell: Json) -> dict[str, float] | None:
    rows = cell.get("phases") or cell.get("bounds")
    return rows[-1]["log_alpha"] or None if rows else None


def _find_smallest(values: Iterable[float | None]) -> float | None:
    """The smallest value; None if there is none, or one was not measured."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    return min(known) if known and len(known) == len(numbers) else None


def _find_largest(values: Iterable[float | None]) -> float | None:
    """The largest value; None if there is none, or one was not measured."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    return max(known) if known and len(known) == len(numbers) else None
