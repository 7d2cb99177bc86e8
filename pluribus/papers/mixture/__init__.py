"""MixtureEnsembles: members whose weights are mixtures of common templates, within any budget of parameters.

A file with a `RECIPE` is one table or figure. rows.py says which methods are trained how at which scale, measurements.py
measures them, claims.py has the rules that several tables share.
"""

from ..recipe import Json

TITLE = "MixtureEnsembles: leveraging parameter sharing for efficient ensembles"
CITATION = "Anonymous authors, under review, 2021."
INTRODUCTION = """The tables and figures of the paper, run again: ours beside theirs. This page is made by `pluribus reproduce`
from the JSON files in `results/`; verdicts are computed from them by the rule that stands beside each."""
ORDER = (*(f"table-{number}" for number in range(1, 7)), "figure-3", "figure-4")


def list_departures(found: dict[str, Json]) -> list[str]:
    """Return sentences about the measured effect of our departures from the paper."""
    return []


def list_findings(found: dict[str, Json]) -> list[str]:
    """Return sentences about what the results say beyond the paper."""
    return []
