"""Architecture search: which operations, inner ensembles among them, suit the cells of a network.

- `search_cell` finds a cell by DARTS or GDAS; `draw_random_cell` draws one
- `Cell`, `CellGraph`, `NAS_BENCH_201`: cells and their graphs; `FoundCell` is what a search returns
- `make_operations`, `BENCHMARK_OPERATIONS`: what a search chooses from
- `build_network` makes the network of a cell, `fold_network` replaces its inner ensembles by plain convolutions
- `draw_cell` draws a cell as SVG

>>> net = build_network(draw_random_cell(make_operations(), seed=1), classes=10, width=4, cells=1)
"""

from .cell_search import search_cell
from .cells import NAS_BENCH_201, Cell, CellGraph, draw_random_cell, make_complete_graph
from .drawing import draw_cell
from .found_cell import FoundCell, SearchEpoch
from .networks import build_network, fold_network
from .operations import BENCHMARK_OPERATIONS, make_operations
from .settings import SearchSettings
from .supernet import Gates, Supernet, mix_operations, sample_operations

__all__ = [
    "BENCHMARK_OPERATIONS",
    "NAS_BENCH_201",
    "Cell",
    "CellGraph",
    "FoundCell",
    "Gates",
    "SearchEpoch",
    "SearchSettings",
    "Supernet",
    "build_network",
    "draw_cell",
    "draw_random_cell",
    "fold_network",
    "make_complete_graph",
    "make_operations",
    "mix_operations",
    "sample_operations",
    "search_cell",
]
