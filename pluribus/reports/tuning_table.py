"""What tuning chose for each method, and what it brought, as a table."""

from typing import Any

from .values import format_count, to_finite

NAMES = {"calibrated_nll": "calibrated NLL", "nll": "NLL", "pinball": "pinball loss", "rmse": "RMSE"}


def explain_tuning(results: dict[str, Any]) -> str:
    """Return the sentences that explain the table; empty if nothing was tuned."""
    tuning = results.get("tuning")
    if not tuning:
        return ""
    name = NAMES.get(tuning["score"], tuning["score"])
    return (
        f"Every method had up to {format_count(tuning['trials'], 'trial')}: the first with its defaults, the others with "
        f"options and settings from its candidates. They were scored by the {name} of the validation rows of seed "
        f"{tuning['seed']}, never on test rows, and smaller is better. The judged runs have other seeds. "
        "What is made of whole networks, as a deep ensemble is, has no trials of its own: its networks are trained as tuned."
    )


def make_tuning_table(results: dict[str, Any]) -> dict[str, Any] | None:
    """Return caption, head and rows of the table: method, trials, what was chosen, score before and after; None if not tuned.

    >>> trial = {"options": {}, "settings": {}, "state": "complete", "score": 0.5, "epochs": 3, "seconds": 1.0}
    >>> best = trial | {"options": {"members": 2}, "score": 0.4}
    >>> mimo = {"name": "mimo", "trained_as": None, "spec": "MIMO(members=2)", "chosen": 1, "trials": [trial, best]}
    >>> make_tuning_table({"tuning": {"trials": 2, "seed": 3, "score": "rmse", "methods": [mimo]}})["rows"]
    [['mimo', '2', 'members 2', '0.5000', '0.4000']]
    """
    tuning = results.get("tuning")
    if not tuning:
        return None
    name = NAMES.get(tuning["score"], tuning["score"])
    head = ["method", "trials", "chosen", f"validation {name} before", "after"]
    return {"caption": "", "head": head, "rows": [_make_row(entry) for entry in tuning["methods"]]}


def describe_chosen(results: dict[str, Any]) -> dict[str, str]:
    """Return what was chosen for each method by its name, in words: the spec, and the settings that are not the defaults."""
    found = {}
    methods = {entry["name"]: entry for entry in (results.get("tuning") or {}).get("methods") or []}
    for name, entry in methods.items():
        trials = methods.get(entry.get("trained_as") or name, entry)
        settings = _find_chosen(trials).get("settings") or {}
        found[name] = ", ".join([entry["spec"], *(_format_values(settings))])
    return found


def _make_row(entry: dict[str, Any]) -> list[str]:
    if entry.get("trained_as"):
        return [entry["name"], "none", f"as for {entry['trained_as']}", "–", "–"]
    trials, chosen = entry["trials"], _find_chosen(entry)
    states = [trial["state"] for trial in trials]
    ends = [
        f"{states.count(state)} {text}"
        for state, text in (("pruned", "stopped early"), ("failed", "failed"))
        if state in states
    ]
    count = f"{len(trials)}" + (f" ({', '.join(ends)})" if ends else "")
    values = [*_format_values(chosen["options"]), *_format_values(chosen["settings"])]
    return [entry["name"], count, ", ".join(values) or "the defaults", _format_score(trials[0]), _format_score(chosen)]


def _find_chosen(entry: dict[str, Any]) -> dict[str, Any]:
    trials = entry["trials"]
    return trials[entry["chosen"]] if entry["chosen"] < len(trials) else {}


def _format_values(values: dict[str, Any]) -> list[str]:
    return [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()]


def _format_score(trial: dict[str, Any]) -> str:
    score = to_finite(trial["score"])
    return "failed" if trial["state"] == "failed" else "not finite" if score is None else f"{score:.4f}"
