"""Variance Networks, in two versions: the published one (ICLR 2019), which is followed where they differ, and an earlier one.

networks.py and trainings.py are what the recipes share; reinforce.py is figure 6's. Every other file is one table or figure.
"""

from ..recipe import Json

TITLE = "Variance Networks: When Expectation Does Not Meet Your Expectations"
CITATION = "Neklyudov, Molchanov, Ashukha and Vetrov, ICLR 2019 (and an earlier version of it, 2018, with the criterion κ)."
INTRODUCTION = """Every table and figure of the paper, run again: ours beside theirs. This page is made by `pluribus reproduce`
from the JSON files in `results/`; verdicts are computed from them by the rule that stands beside each."""
ORDER = (
    *("figure-1", "figure-2", "theorem-1", "figure-3", "figure-8", "table-1", "table-2", "noises", "figure-4", "figure-5"),
    *("figure-6", "figure-7", "table-3", "figure-9", "kappa", "absolute"),
)


def departures(found: dict[str, Json]) -> list[str]:
    """What our departures do, as measured."""
    from .findings import departures

    return departures(found)


def learnt(found: dict[str, Json]) -> list[str]:
    """What the results say beyond the papers."""
    from .findings import learnt

    return learnt(found)
