"""The recommendation of a comparison in words, drawn only from what was measured.

Among the methods within a limit on latency, a method is a candidate if the interval of its gain over the baseline (the single
network) in calibrated NLL lies above zero. Candidates that another candidate beats in the same way are dropped: what is left
has the most deep-ensemble equivalents as far as can be told. Of these, the method with the lowest latency is recommended. Deep
ensembles of fewer networks than the reference are methods like the others; their latency lies between 1 and the reference's.
"""

from collections.abc import Sequence
from typing import Any

from .equivalents import EquivalentsCurve, format_equivalents
from .statistics import PairedBootstrap

LIMITS = (1.1, 2.0, 5.0, None)
SCORE_WORDS = {"calibrated_nll": "calibrated NLL", "nll": "NLL"}
Json = dict[str, Any]


def recommend(
    methods: list[Json],
    draws: PairedBootstrap,
    base: str,
    curve: EquivalentsCurve | None = None,
    smaller: Sequence[Json] = (),
    decider: str = "calibrated_nll",
) -> list[Json]:
    """One recommendation for each limit on latency that changes the choice: `limit`, `method` and `text`.

    Methods have name, cost and share, as in results.json; `base` is the name of the baseline. `smaller` are deep ensembles of
    fewer networks than the reference, with the `title` to recommend them by and a `remark`. `draws` are of the score `decider`,
    and `curve` tells the equivalents. The method of a recommendation is None where no method is better than the baseline beyond
    the noise.
    """
    known = {method["name"]: method for method in (*methods, *smaller) if method["name"] in draws.values and method["cost"]}
    if base not in known or len(known) < 2:
        return []
    found: list[Json] = []
    for limit in LIMITS:
        within = [name for name in known if limit is None or name == base or latency(known[name]) <= limit]
        if limit is not None and len(within) < 2:
            continue
        choice, rivals = choose_method(within, known, draws, base)
        named = get_title(known[choice]) if choice else None
        if found and named == found[-1]["method"] and named is not None:
            continue  # a higher limit does not change the choice
        limited = "at any latency" if limit is None else f"under {limit:g}× the latency of one network"
        if choice is None:
            text = explain_no_choice([known[name] for name in within if name != base], draws, SCORE_WORDS[decider])
        else:
            others = [get_title(known[name]) for name in rivals]
            text = explain_choice(known[choice], others, draws, base, curve, SCORE_WORDS[decider])
        if found and choice is None and found[-1]["method"] is None:
            found.pop()  # the entry of the wider limit covers both
        found.append({"limit": limited, "method": named, "text": text})
    return found


def get_title(method: Json) -> str:
    """The name that a method is recommended by."""
    return method.get("title") or method["name"]


def latency(method: Json) -> float:
    """The measured latency as a ratio to the base network."""
    return method["cost"]["latency"]["value"]


def choose_method(names: list[str], known: dict[str, Json], draws: PairedBootstrap, base: str) -> tuple[str | None, list[str]]:
    """The fastest candidate that no other candidate beats, and the unbeaten candidates that are slower."""
    better = [name for name in names if name != base and draws.gain(name, base).low > 0]
    if not better:
        return None, []
    unbeaten = [name for name in better if not any(draws.gain(other, name).low > 0 for other in better if other != name)]
    choice = min(unbeaten, key=lambda name: latency(known[name]))
    return choice, [name for name in unbeaten if name != choice]


def explain_no_choice(others: list[Json], draws: PairedBootstrap, score: str) -> str:
    """Why no method is recommended."""
    count = sum("title" not in method for method in others)
    which = f"None of the {count} other methods has" if count > 1 else "The other method does not have"
    if count == 0:
        which = f"{join_names([get_title(method) for method in others])} would not have"
    return f"{which} a lower {score} beyond the noise of {draws.seeds} seed{'s' * (draws.seeds != 1)} and the rows to judge by."


def explain_choice(
    method: Json, rivals: list[str], draws: PairedBootstrap, base: str, curve: EquivalentsCurve | None, score: str
) -> str:
    """Why a method is recommended: how many networks it is worth, its gain and its latency."""
    name = method["name"]
    gain, before = draws.gain(name, base), draws.values[base]
    text = f"Its {score} is {draws.values[name]:.4g}, lower than the single network's "
    text += f"{before:.4g} by {gain.value:.2g} ({gain.low:.2g} to {gain.high:.2g})"
    if curve is not None and name not in curve.sizes:
        text += f": worth {format_equivalents(curve.measure(name))} independent networks"
    elif method.get("share") and method["share"]["value"] != 1:  # the reference has all of its own gain
        value, low, high = (100 * method["share"][key] for key in ("value", "low", "high"))
        text += f": {value:.0f} % ({low:.0f} to {high:.0f}) of the deep ensemble's gain"
    text += f", at {latency(method):.2f}× the latency"
    timed = method["cost"]["latency"]
    text += f" ({timed['low']:.2f} to {timed['high']:.2f})." if "low" in timed else "."
    text += f" {method['remark']}" if "remark" in method else ""
    if rivals:
        text += f" The {score} of {join_names(rivals)} cannot be told from it here; "
        text += f"{get_title(method)} had the lowest latency of them."
    return text


def join_names(names: list[str]) -> str:
    """Join names with commas and "and".

    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
