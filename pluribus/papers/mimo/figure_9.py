"""mimo/figure-9: accuracy against sparsity, for M = 1, 2 and 3."""

import functools

from ..recipe import Recipe, Scale
from .regularization import ABOUT, ABSENT, COLUMNS, Measured, draw_path, judge, list_cells, measure, tabulate

RECIPE = Recipe(
    id="mimo/figure-9",
    title="Accuracy against sparsity",
    question="Does MIMO suffer more than one network where capacity is constrained?",
    source="figure 9, appendix C",
    scales={
        scale: Scale(ABOUT[scale], list_cells(scale, "l1"), () if scale == "smoke" else ("cifar10",), ABSENT) for scale in ABOUT
    },
    measure=measure,
    measured=Measured,
    tabulate=functools.partial(tabulate, kind="l1"),
    judge=functools.partial(judge, kind="l1"),
    columns=COLUMNS,
    draw=functools.partial(draw_path, kind="l1", by="left"),
)
