"""inner/table-5: dropout of one half after every convolution but the first, with and without inner ensembles.

IEN and base are the trainings of table 1.
"""

import dataclasses

from ..recipe import Found, Json, Recipe, Scale
from ..verdicts import Verdict
from . import networks
from .error_claims import judge_chance, judge_fewer, require_depth, require_regime, tabulate
from .rows import BASE, DROPOUT, DROPOUT_IEN, IEN, RATE, ROWS, Row, list_cells
from .trained_rows import Measured, measure

PAPER = {
    IEN: "6.93 6.27 29.34 28.17",
    BASE: "8.38 6.38 29.97 27.83",
    DROPOUT: "90.48 91.29 99.09 98.91",
    DROPOUT_IEN: "90.12 90.13 98.98 98.98",
}


def list_dropout_cells(scale: str) -> dict[str, Json]:
    """The rows of the residual networks."""
    cells: dict[str, Json] = {}
    for network in networks.RESNETS[scale]:
        model = networks.NETWORKS[scale][network]["model"]
        dropped: Json = {"model": ({"name": model} if isinstance(model, str) else model) | {"dropout": RATE}}
        rows: dict[str, Row] = {name: ROWS[name] for name in (IEN, BASE)}
        rows |= {new: dataclasses.replace(ROWS[old], changes=dropped) for new, old in ((DROPOUT, BASE), (DROPOUT_IEN, IEN))}
        cells |= list_cells(scale, rows, (network,))
    return cells


def judge(found: Found) -> list[Verdict]:
    depth, regime = require_depth(found), require_regime(found)
    return [
        depth.excuse(judge_chance("With dropout everywhere the network guesses.", found, DROPOUT, BASE)),
        depth.excuse(judge_chance("With dropout everywhere an inner ensemble guesses.", found, DROPOUT_IEN, IEN)),
        regime.excuse(judge_fewer("Inner ensembles improve a network with dropout slightly.", found, DROPOUT_IEN, (DROPOUT,))),
    ]


RECIPE = Recipe(
    id="inner/table-5",
    title="Dropout everywhere",
    question="What does dropout after every convolution do, with and without inner ensembles?",
    source="table 5, appendix G",
    scales={
        name: Scale(
            f"{networks.ABOUT[name]} The residual networks alone, with dropout of {RATE:g}.",
            list_dropout_cells(name),
            networks.DATA[name],
            networks.NOT_RUN if name == "cpu" else {},
        )
        for name in ("smoke", "cpu", "paper")
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"method": "errors, %"} | {name: name for name in networks.list_networks() if name.startswith("ResNet")},
    published=[
        {"method": row} | dict(zip(networks.RESNETS["paper"], map(float, numbers.split()), strict=True))
        for row, numbers in PAPER.items()
    ],
)
