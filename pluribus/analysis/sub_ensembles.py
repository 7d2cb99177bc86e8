"""The scores of all smaller ensembles that are parts of one ensemble of independent networks, in the pass that judges it.

Any l of M independent networks are a deep ensemble of l networks. For every size l from 1 to M, several sub-ensembles are
judged as ensembles of their own, each calibrated for itself, and the scores of every row are averaged over them:

    size 1: every member;   size M: all;   else the rotations {i, i + 1, …, i + l − 1} mod M

Rotations use every member equally often. Ashukha et al., "Pitfalls of in-domain uncertainty estimation and ensembling in deep
learning", ICLR 2020, section 5, need this curve for deep-ensemble equivalents.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ..core.predictive import Predictive, Task
from ..metrics.temperature import cross_fit_nll, nll_at_temperatures
from .scores import RegressionScores, RowScores

ROTATIONS = 8
"""The most sub-ensembles of a size."""
MOST_TABLES = 2**20
"""Rows times sub-ensembles that are kept at most, in about 480 bytes each."""


def list_sub_ensembles(members: int, rows: int = 1) -> dict[int, list[list[int]]]:
    """The members of the sub-ensembles of each size.

    Args: the number of members M; the rows to judge, as there are fewer rotations where these are very many.

    >>> list_sub_ensembles(3)
    {1: [[0], [1], [2]], 2: [[0, 1], [1, 2], [2, 0]], 3: [[0, 1, 2]]}
    """
    count = min(members, max(min(ROTATIONS, MOST_TABLES // (rows * members)), 1))
    starts = [place * members // count for place in range(count)]
    found = {
        size: [[(start + step) % members for step in range(size)] for start in (starts if size < members else [0])]
        for size in range(1, members + 1)
    }
    if count == min(members, ROTATIONS):
        found[1] = [[member] for member in range(members)]
    return found


class SubEnsembleScores:
    """The row scores of sub-ensembles of every size; `add` takes the batches one by one.

    >>> collected = SubEnsembleScores("classification", members=2, rows=3)
    >>> collected.add(Predictive(torch.zeros(2, 3, 4)), torch.tensor([0, 1, 2]))
    >>> sorted(collected.table())
    ['calibrated_nll_1', 'calibrated_nll_2', 'right_1', 'right_2']
    """

    def __init__(self, task: Task, members: int, rows: int, noise: float | None = None) -> None:
        self.task = task
        self.is_possible = task == "classification" or noise is not None
        self.subsets = list_sub_ensembles(members, rows)
        self.kept: dict[int, list[_BriefScores | RegressionScores]] = {
            size: [_BriefScores() if task == "classification" else RegressionScores(noise) for _ in subsets]
            for size, subsets in self.subsets.items()
        }

    def add(self, p: Predictive, targets: Tensor) -> None:
        """Add a batch: predictions of B rows with all members, and their targets."""
        if self.is_possible:
            for size, subsets in self.subsets.items():
                for members, kept in zip(subsets, self.kept[size], strict=True):
                    kept.add(replace(p, outputs=p.outputs[members]), targets)

    def table(self) -> dict[str, Tensor]:
        """For each size l the columns `calibrated_nll_l` and `right_l` (of a regression `square_l`), `[N]` each."""
        if not self.is_possible:  # a regression whose noise is not known
            return {}
        names = ("calibrated_nll", "right" if self.task == "classification" else "square")
        found = {}
        for size, kept in self.kept.items():
            for name in names:
                found[f"{name}_{size}"] = torch.stack([one[name] for one in kept]).mean(0)
        return found


class _BriefScores(RowScores):
    """The calibrated NLL and whether the answer is right, alone."""

    columns = ("right",)

    def add(self, p: Predictive, targets: Tensor) -> None:
        labels = p.labels
        self.append((labels == targets.view_as(labels)).double().masked_fill(labels < 0, torch.nan))
        self.kept_for_calibration.append(nll_at_temperatures(p, targets).float().cpu())

    def calibrate_nll(self, kept: Tensor) -> Tensor:
        return cross_fit_nll(kept)
