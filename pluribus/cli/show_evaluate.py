"""What `pluribus evaluate` prints."""

from typing import Any

from rich.console import Console
from rich.table import Table

from .show_scores import SCORE_NAMES, format_score


def print_evaluation(result: dict[str, Any]) -> None:
    """Print the scores of a run, and what else was measured of it."""
    console = Console()
    console.print(
        f"[bold]{result['title']}[/] on {result['data']}, {result['split']}, {result['rows']:,} rows", highlight=False
    )
    cooled, members = result["tempered"], result["member_scores"]
    several = result["members"] > 1
    table = Table("score", "value", "95 % interval")
    if several:
        table.add_column("a member")
    if cooled:
        table.add_column(f"T = {cooled['temperature']:.2f}")
    for name, value in result["scores"].items():
        low, high = result["intervals"].get(name, (None, None))
        interval = "" if low is None else f"{format_score(name, low)} – {format_score(name, high)}"
        row = [SCORE_NAMES.get(name, name), format_score(name, value), interval]
        if several:
            row.append(format_score(name, members[name]) if name in members else "")
        if cooled:
            row.append(format_score(name, cooled[name]))
        table.add_row(*row)
    console.print(table)
    facts: dict[str, str] = {}
    if "noise" in result:
        noise = result["noise"]
        facts["noise in the targets"] = (
            "not known: no validation rows" if noise is None else f"{noise:.4g} (by validation rows)"
        )
    if several:
        facts |= {SCORE_NAMES.get(name, name): format_score(name, value) for name, value in result["diversity"].items()}
    if result.get("shift"):
        shift = result["shift"]
        facts |= {
            SCORE_NAMES[n]: format_score(n, shift[n]) for n in ("cacc", "cnll", "cece", "mce") if shift.get(n) is not None
        }
    for name, found in result.get("ood", {}).items():
        for by, value in found["auroc"].items():
            facts[f"AUROC, {name}, by {by}"] = f"{value:.4f}, FPR95 {100 * found['fpr95'][by]:.1f} %"
    if result.get("attack"):
        attack, one = result["attack"], result["attack"]["one_sample"]
        facts[attack["title"]] = f"succeeds on {100 * attack['final']:.1f} %" + (
            f" (through one draw {100 * one['final']:.1f} %)" if one else ""
        )
    if result.get("cost"):
        cost = result["cost"]
        latency = cost["latency"]
        facts["latency"] = f"{latency['value']:.2f} × one network ({latency['low']:.2f} – {latency['high']:.2f})"
        facts["memory of an answer"] = f"{cost['memory']:.2f} ×"
        facts["parameters"] = f"{cost['parameters']:.2f} × trained, {cost['deployed_parameters']:.2f} × deployed"
        if cost["deployed_flops"] is not None and cost["training_flops"] is not None:
            facts["FLOPs"] = f"{cost['training_flops']:.2f} × in training, {cost['deployed_flops']:.2f} × deployed"
    if facts:
        more = Table(show_header=False)
        for name, text in facts.items():
            more.add_row(name, text)
        console.print(more)
