"""The recommendation of a comparison in words, drawn only from what was measured.

Among the methods within a limit on latency, a method is a candidate if the interval of its NLL gain over the baseline (the
single network) lies above zero. Candidates that another candidate beats in the same way are dropped. Of the rest, the method
with the lowest measured latency is recommended.
"""

from typing import Any

from .statistics import PairedBootstrap

LIMITS = (1.1, 2.0, 5.0, None)
Json = dict[str, Any]


def recommend(methods: list[Json], draws: PairedBootstrap, base: str) -> list[Json]:
    """One recommendation for each limit on latency that changes the choice: `limit`, `method` and `text`.

    Methods have name, scores, cost and share, as in results.json; `base` is the name of the baseline. The method of a
    recommendation is None where no method is better than the baseline beyond the noise.
    """
    known = {method["name"]: method for method in methods if method["name"] in draws.values and method["cost"]}
    if base not in known or len(known) < 2:
        return []
    found: list[Json] = []
    for limit in LIMITS:
        within = [name for name in known if limit is None or name == base or latency(known[name]) <= limit]
        if limit is not None and len(within) < 2:
            continue
        choice, rivals = choose_method(within, known, draws, base)
        if found and choice == found[-1]["method"] and choice is not None:
            continue  # a higher limit does not change the choice
        title = "at any latency" if limit is None else f"under {limit:g}× the latency of one network"
        text = explain_no_choice(within, draws) if choice is None else explain_choice(known[choice], rivals, draws, base)
        if found and choice is None and found[-1]["method"] is None:
            found.pop()  # the entry of the wider limit covers both
        found.append({"limit": title, "method": choice, "text": text})
    return found


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


def explain_no_choice(names: list[str], draws: PairedBootstrap) -> str:
    """Why no method is recommended."""
    others = len(names) - 1
    which = f"None of the {others} other methods has" if others > 1 else "The other method does not have"
    return f"{which} a lower NLL beyond the noise of {draws.seeds} seed{'s' * (draws.seeds != 1)} and the rows to judge by."


def explain_choice(method: Json, rivals: list[str], draws: PairedBootstrap, base: str) -> str:
    """Why a method is recommended: its gain, share and latency."""
    name = method["name"]
    gain, before = draws.gain(name, base), draws.values[base]
    text = f"Its NLL is {draws.values[name]:.4g}, lower than the single network's "
    text += f"{before:.4g} by {gain.value:.2g} ({gain.low:.2g} to {gain.high:.2g})"
    if method.get("share") and method["share"]["value"] != 1:  # the reference has all of its own gain
        value, low, high = (100 * method["share"][key] for key in ("value", "low", "high"))
        text += f": {value:.0f} % ({low:.0f} to {high:.0f}) of the deep ensemble's gain"
    text += f", at {latency(method):.2f}× the latency"
    timed = method["cost"]["latency"]
    text += f" ({timed['low']:.2f} to {timed['high']:.2f})." if "low" in timed else "."
    if rivals:
        text += f" The NLL of {join_names(rivals)} cannot be told from it here; {name} had the lowest latency of them."
    return text


def join_names(names: list[str]) -> str:
    """Join names with commas and "and".

    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
