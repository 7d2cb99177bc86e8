"""Variance Networks, in two versions: the published one (ICLR 2019), which is followed where they differ, and an earlier one.

A file with a `RECIPE` is one table or figure; worth.py is a table of ours. The recipes share networks.py, trainings.py,
features.py, bounds.py, configurations.py (what is trained at which scale) and trained_cells.py (what every cell of a trained
network has), seeds.py (means over seeds) and preconditions.py (when a claim can be judged), phase_transition.py and
phase_figures.py (figures 3 and 8), response_densities.py (figures 1 and 9), discrepancy.py (theorem 1), reinforce.py and
environments.py (figure 6). findings.py writes the conclusions on the page.
"""

from ..recipe import Json

TITLE = "Variance Networks: When Expectation Does Not Meet Your Expectations"
CITATION = "Neklyudov, Molchanov, Ashukha and Vetrov, ICLR 2019 (and an earlier version of it, 2018, with the criterion κ)."
INTRODUCTION = """Every table and figure of the paper, run again: ours beside theirs. This page is made by `pluribus reproduce`
from the JSON files in `results/`; verdicts are computed from them by the rule that stands beside each."""
ORDER = (
    *("figure-1", "figure-2", "theorem-1", "figure-3", "figure-8", "table-1", "table-2", "noises", "figure-4", "figure-5"),
    *("figure-6", "figure-7", "table-3", "figure-9", "kappa", "absolute", "worth"),
)


def list_departures(found: dict[str, Json]) -> list[str]:
    """Return sentences about the measured effect of our departures from the paper."""
    from .findings import list_departures

    return list_departures(found)


def list_findings(found: dict[str, Json]) -> list[str]:
    """Return sentences about what the results say beyond the papers."""
    from .findings import list_findings

    return list_findings(found)
