"""inner/table-2: outer ensembles, which average the predictions of trainings with several seeds.

The members are the trainings of table 1, so this table trains nothing. They see the same images and differ by their seeds, as
the members of `DeepEnsemble(of=…)` do and as the paper has it. The paper averages three trainings, of base networks four; here
all ensembles have three members, as many as there are seeds.
"""

import dataclasses

import numpy as np
import torch

from ...core.predictive import Predictive
from ...file_formats.schema import Schema, Share
from ...metrics.classification import accuracy, find_correct
from ..classification_scores import Blocks, average_blocks, compare_cells
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim
from . import networks
from .error_claims import SAME, average, collect, list_networks, require_regime
from .rows import BASE, DENSE, IEN, MAXOUT, ROWS, SLOW, list_cells
from .trained_rows import load_trained

OUTER = (IEN, DENSE, MAXOUT, BASE, SLOW)
PAPER = {
    IEN: "5.49 5.00 5.91 4.02 5.68 5.71 24.38 23.32 24.85 19.65 24.60 25.33",
    DENSE: "5.05 4.95 5.21 4.04 5.70 6.02 23.62 23.03 24.44 19.11 25.44 27.44",
    MAXOUT: "6.43 5.20 5.66 4.87 6.24 6.66 26.34 24.12 24.72 24.65 26.89 29.29",
    BASE: "5.68 4.97 5.46 4.59 5.61 5.67 24.13 22.26 24.85 19.86 24.76 26.02",
}


def list_outer_cells(scale: str) -> dict[str, Json]:
    rows = {name: dataclasses.replace(ROWS[name], fold="seeds") for name in OUTER}  # one cell for all seeds
    return list_cells(scale, rows)


class Measured(Schema):
    """Of the outer ensemble and, on average, of one of its members: accuracy, and errors by block."""

    outer_accuracy: Share
    accuracy: Share
    outer_blocks: Blocks
    error_blocks: Blocks


def measure(options: Json, workspace: Workspace) -> Json:
    trained = [load_trained(options["training"] | {"seed": seed}, workspace) for seed in options["seeds"]]
    y = trained[0].y
    members = [each.ensemble.predict(each.x) for each in trained]
    outer = Predictive(torch.cat([member.outputs for member in members]))

    def list_errors(answer: Predictive) -> list[float]:
        return average_blocks(1 - find_correct(answer, y).double().numpy())

    return {
        "outer_accuracy": accuracy(outer, y),
        "accuracy": float(np.mean([accuracy(member, y) for member in members])),
        "outer_blocks": list_errors(outer),
        "error_blocks": np.mean([list_errors(member) for member in members], 0).tolist(),
    }


def tabulate(found: Found) -> list[Json]:
    return [
        {"method": f"{row}{kind}"}
        | {
            network: 100 * (1 - average(found, row, key, network))
            for network in list_networks(found)
            if collect(found, row, network)
        }
        for row in OUTER
        for kind, key in (("", "outer_accuracy"), (", one member", "accuracy"))
        if collect(found, row)
    ]


def judge(found: Found) -> list[Verdict]:
    regime = require_regime(found)
    cells = {row: collect(found, row) for row in OUTER}
    alone = {row: [cell | {"outer_blocks": cell["error_blocks"]} for cell in cells[row]] for row in (IEN, BASE)}
    rivals = {row: compare_cells(cells[IEN], cells[row], "outer_blocks") for row in (BASE, MAXOUT)}
    below = compare_cells(cells[BASE], alone[IEN], "outer_blocks")
    above = compare_cells(alone[IEN], alone[BASE], "outer_blocks")
    same = compare_cells(cells[IEN], cells[SLOW], "outer_blocks")
    published = [
        judge_claim(
            "An outer ensemble of IENs exceeds those of base networks and of maxout.",
            "fewer errors than both, over all networks, beyond the interval; direction: fewer",
            ", ".join(f"errors against {row} {gain}" for row, gain in rivals.items()),
            all(gain.high < 0 for gain in rivals.values()),
            all(gain.value < 0 for gain in rivals.values()),
        ),
        judge_claim(
            "An outer ensemble of base networks outperforms a single IEN.",
            "fewer errors, over all networks, beyond the interval; direction: fewer",
            f"errors {below}",
            below.high < 0,
            below.value < 0,
        ),
        judge_claim(
            "A single IEN is better than a single base network: it stands between that and an outer ensemble.",
            "more errors than an outer ensemble of base networks and fewer than one of them, over all networks, both beyond "
            "the interval; direction: more and fewer",
            f"errors of the outer ensemble against IEN {below}, of IEN against one base network {above}",
            below.high < 0 and above.high < 0,
            below.value < 0 and above.value < 0,
        ),
    ]
    return [
        *(regime.excuse(verdict) for verdict in published),
        judge_claim(
            "Not in the paper: an outer ensemble of base networks at lr/m and m·wd is as good as one of IENs.",
            f"the interval of the difference of errors, over all networks, lies within ±{100 * SAME:g} point; direction: the "
            "difference does",
            f"errors of IEN against {SLOW} {same}",
            -SAME <= same.low <= same.high <= SAME,
            abs(same.value) <= SAME,
        ),
    ]


RECIPE = Recipe(
    id="inner/table-2",
    title="Outer ensembles",
    question="Does an ensemble of inner ensembles beat one of base networks?",
    source="table 2, section 4.2",
    scales={
        name: Scale(
            networks.ABOUT[name].replace("three seeds", "ensembles of the trainings with three seeds"),
            list_outer_cells(name),
            networks.DATA[name],
            networks.NOT_RUN if name == "cpu" else {},
        )
        for name in ("smoke", "cpu", "paper")
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={"method": "errors, %"} | {name: name for name in networks.list_networks()},
    published=[
        {"method": row} | dict(zip(networks.NETWORKS["paper"], map(float, numbers.split()), strict=True))
        for row, numbers in PAPER.items()
    ],
    departures=["Outer ensembles of base networks have three members, as the others have; the paper's have four."],
)
