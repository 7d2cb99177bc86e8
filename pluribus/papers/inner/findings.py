"""Sentences about what the tables say beyond the paper, computed from their cells."""

from ..recipe import Found, Json
from ..verdicts import format_percent
from . import table_3
from .error_claims import average, collect, compare_rows, list_networks
from .rows import BASE, EXACT, FAST, IEN, INVERSE, MEAN, SLOW
from .training_costs import FUSED, NAIVE


def list_departures(cells: dict[str, Json]) -> list[str]:
    """What our departures from the paper do, by what was measured."""
    texts = []
    if found := cells.get("table-1"):
        diverged = [name for name, cell in found.items() if cell.get("diverged")]
        if diverged:
            texts.append(f"These trainings diverged, and count as guesses: {'; '.join(diverged)}.")
    return texts


def list_findings(cells: dict[str, Json]) -> list[str]:
    """What was learnt, of the artefacts that have results."""
    texts = []
    if found := cells.get("table-1"):
        texts += describe_learning_rate(found)
        texts += describe_folding(found)
    if found := cells.get("table-3"):
        texts.append(describe_cells(found))
    if found := cells.get("table-4"):
        texts.append(describe_times(found))
    return texts


def describe_learning_rate(found: Found) -> list[str]:
    gain, same, fast = (compare_rows(found, *rows) for rows in ((IEN, BASE), (IEN, SLOW), (FAST, BASE)))
    shift = max(cell["shift"] for cell in collect(found, EXACT))
    return [
        "Under SGD the inner ensemble is a choice of learning rate and decay. In double precision its outputs after an epoch "
        f"are those of the base network at lr/m and m·wd to {shift:.0e}. In single precision rounding parts the two trainings, "
        f"and their errors differ by {same}, while IEN and the base network at lr and wd differ by {gain}, and the base "
        f"network at m·lr and at lr by {fast}."
    ]


def describe_folding(found: Found) -> list[str]:
    spread = average(found, IEN, "spread")
    moved = max(cell["shift"] for cell in collect(found, INVERSE))
    exact = max(cell["shift"] for cell in collect(found, MEAN))
    networks = list_networks(found)
    changes = [abs(compare_rows(found, INVERSE, IEN, network).value) for network in networks]
    return [
        f"After training, copies still lie {format_percent(spread, 0)} of their mean's norm from it: weight decay alone brings "
        f"them together. Their plain mean changes outputs by at most {exact:.0e}, the mean by inverse variance by up to "
        f"{moved:.2g}, and errors by up to {format_percent(max(changes))}."
    ]


def describe_cells(found: Found) -> str:
    parts = []
    for algorithm, title in table_3.ALGORITHMS.items():
        shares = table_3.measure_shares(table_3.collect(found, table_3.name_group(algorithm, "all")))
        parts.append(f"{title} " + ", ".join(f"{format_percent(share, 0)} {kind}" for kind, share in shares.items()))
    return f"What searches choose for the edges of a cell: {'; '.join(parts)}. By chance an operation gets one edge in seven."


def describe_times(found: Found) -> str:
    timed = {name: cell["ratios"] for name, cell in found.items() if cell["ratios"]}
    parts = [f"{name} {ratios[FUSED]['median']:.2f}× and {ratios[NAIVE]['median']:.2f}×" for name, ratios in timed.items()]
    return (
        "The mean of m layers is one layer, so the training time that the paper names as its price need not be paid. A step of "
        f"fused copies, and of m layers one by one, takes, as a multiple of the base network's: {'; '.join(parts)}."
    )
