"""A recommendation in words, drawn only from what was measured, and silent where a difference is within the noise.

Among the methods within a limit on latency, one is recommended if its NLL is lower than the single network's by an interval
that does not hold zero. Of those that no other one beats so, it is the one with the lowest measured latency.
"""

from typing import Any

from .results import BASE, Draws

LIMITS = (1.1, 2.0, 5.0, None)
Json = dict[str, Any]


def verdict(methods: list[Json], draws: Draws) -> list[Json]:
    """A sentence for each limit that changes the choice. Methods have name, scores, cost and share, as in results.json."""
    known = {method["name"]: method for method in methods if method["name"] in draws.values and method["cost"]}
    if BASE not in known or len(known) < 2:
        return []
    found: list[Json] = []
    for limit in LIMITS:
        within = [name for name in known if limit is None or name == BASE or latency(known[name]) <= limit]
        if limit is not None and len(within) < 2:
            continue
        choice, rivals = chosen(within, known, draws)
        if found and choice == found[-1]["method"] and choice is not None:
            continue  # more latency buys nothing
        title = "at any latency" if limit is None else f"under {limit:g}× the latency of one network"
        text = nothing(within, draws) if choice is None else reasons(known[choice], rivals, draws)
        if found and choice is None and found[-1]["method"] is None:
            found.pop()  # the wider limit says it for both
        found.append({"limit": title, "method": choice, "text": text})
    return found


def latency(method: Json) -> float:
    return method["cost"]["latency"]["value"]


def chosen(names: list[str], known: dict[str, Json], draws: Draws) -> tuple[str | None, list[str]]:
    """The fastest of those that beat the single network and that none beats, and which of the others cannot be told from it."""
    better = [name for name in names if name != BASE and draws.less(name, BASE).low > 0]
    if not better:
        return None, []
    unbeaten = [name for name in better if not any(draws.less(other, name).low > 0 for other in better if other != name)]
    choice = min(unbeaten, key=lambda name: latency(known[name]))
    return choice, [name for name in unbeaten if name != choice]


def nothing(names: list[str], draws: Draws) -> str:
    others = len(names) - 1
    which = f"None of the {others} other methods has" if others > 1 else "The other method does not have"
    return f"{which} a lower NLL beyond the noise of {draws.seeds} seed{'s' * (draws.seeds != 1)} and the rows to judge by."


def reasons(method: Json, rivals: list[str], draws: Draws) -> str:
    name = method["name"]
    gain, base = draws.less(name, BASE), draws.values[BASE]
    text = f"Its NLL is {draws.values[name]:.4g}, lower than the single network's "
    text += f"{base:.4g} by {gain.value:.2g} ({gain.low:.2g} to {gain.high:.2g})"
    if method.get("share") and method["share"]["value"] != 1:  # of its own gain the deep ensemble keeps all
        value, low, high = (100 * method["share"][key] for key in ("value", "low", "high"))
        text += f": {value:.0f} % ({low:.0f} to {high:.0f}) of the deep ensemble's gain"
    text += f", at {latency(method):.2f}× the latency"
    timed = method["cost"]["latency"]
    text += f" ({timed['low']:.2f} to {timed['high']:.2f})." if "low" in timed else "."
    if rivals:
        text += f" The NLL of {listed(rivals)} cannot be told from it here; {name} had the lowest latency of them."
    return text


def listed(names: list[str]) -> str:
    """
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
