"""MIMO: several independent subnetworks in one network, each with an input and an output of its own.

A file with a `RECIPE` is one table or figure. configurations.py says what is trained at which scale; benchmark.py and
benchmark_cells.py have what tables 1 to 3 share, imagenet.py what tables 3 and 4 share, regularization.py what figures 7 to 9
share.
"""

from ..recipe import Json

TITLE = "Training independent subnetworks for robust prediction"
CITATION = "Havasi, Jenatton, Fort, Liu, Snoek, Lakshminarayanan, Dai and Tran, ICLR 2021."
INTRODUCTION = """The tables and figures of the paper, run again: ours beside theirs. This page is made by `pluribus reproduce`
from the JSON files in `results/`; verdicts are computed from them by the rule that stands beside each."""
ORDER = (
    *(f"figure-{number}" for number in range(2, 10)),
    *(f"table-{number}" for number in range(1, 5)),
    "capacity",
    "cost",
)


def list_departures(found: dict[str, Json]) -> list[str]:
    """Return sentences about the measured effect of our departures from the paper."""
    return []


def list_findings(found: dict[str, Json]) -> list[str]:
    """Return sentences about what the results say beyond the paper."""
    return []
