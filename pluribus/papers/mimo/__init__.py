"""MIMO: several independent subnetworks in one network, each with an input and an output of its own.

A file with a `RECIPE` is one table or figure. configurations.py says what is trained at which scale; benchmark.py and
benchmark_cells.py have what tables 1 to 3 share, imagenet.py what tables 3 and 4 share, regularization.py what figures 7 to 9
share; capacity_cells.py lists the cells of the map.
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
    from . import benchmark, capacity

    def take_cells(name: str) -> Json:
        return {key: cell["found"] for key, cell in found.get(f"mimo/{name}", {}).get("cells", {}).items()}

    texts = []
    if cells := take_cells("table-1"):
        texts.append(f"What validation rows chose for the rows of table-1: {benchmark.describe_choices(cells)}.")
    if cells := take_cells("capacity"):
        texts += capacity.describe_maps(cells)
    return texts
