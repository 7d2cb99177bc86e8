"""Inner Ensemble Networks: the mean of m copies of every layer, folded into one layer after training.

A file with a `RECIPE` is one table or figure. random_networks.py builds the networks whose responses figure 2 is about,
and gain_claims.py has its rules. networks.py and rows.py say what tables 1, 2 and 5 and figure 3 train, trained_rows.py
measures it, and error_claims.py has the rules that they share. training_costs.py measures table 4, cell_trainings.py table 3.
findings.py has the sentences about what was learnt.
"""

from ..recipe import Json

TITLE = "Inner Ensemble Networks: average ensemble as an effective regularizer"
CITATION = "Mohamed et al., 2020."
INTRODUCTION = """The tables and figures of the paper, run again: ours beside theirs. This page is made by `pluribus reproduce`
from the JSON files in `results/`; verdicts are computed from them by the rule that stands beside each."""
ORDER = ("figure-2", "table-1", "figure-3", "table-2", "table-3", "table-4", "table-5")


def list_departures(found: dict[str, Json]) -> list[str]:
    """Return sentences about the measured effect of our departures from the paper."""
    from . import findings

    return findings.list_departures(take_cells(found))


def list_findings(found: dict[str, Json]) -> list[str]:
    """Return sentences about what the results say beyond the paper."""
    from . import findings, gain_claims

    cells = take_cells(found)
    gains = gain_claims.list_findings(cells["figure-2"]) if "figure-2" in cells else []
    return [*gains, *findings.list_findings(cells)]


def take_cells(found: dict[str, Json]) -> dict[str, Json]:
    """What the cells of every artefact measured, by its name."""
    return {
        key.partition("/")[2]: {name: cell["found"] for name, cell in result["cells"].items()} for key, result in found.items()
    }
