"""The rows of the tables: what is trained, and what is folded afterwards.

Copies are drawn about the weights of the base network (`init="keep"`), which is the distribution of eq. 10: so all rows of a
seed start from the same function, but for maxout.

"base at lr÷m, m·wd" has these settings in the convolutions, which are what IEN copies: gradients there are divided by m, which
is the same under SGD. "base at m·lr" has m·lr in all layers.

The paper does not say what is folded of a base network, and prints one number without a deviation: we take it for the average
of the networks of all seeds.
"""

from dataclasses import dataclass, field
from typing import Literal

from ..recipe import Json
from .networks import COPIES, NETWORKS, SEEDS, configure

IEN, MEAN, INVERSE, DENSE = "IEN", "IEN, folded by mean", "IEN, folded by inverse variance", "IEN+FC"
MAXOUT, MAXOUT_FOLDED, BASE, BASE_FOLDED = "maxout", "maxout, folded", "base", "base, folded"
SLOW, FAST, LEAN = "base at lr÷m, m·wd", "base at m·lr", "IEN, lean"
EXACT, EXACT_LEAN = "base at lr÷m, m·wd, in double precision", "IEN, lean, in double precision"
DROPOUT, DROPOUT_IEN = "dropout", "dropout and IEN"
Fold = Literal["mean", "inverse variance", "seeds"]


@dataclass(frozen=True)
class Row:
    """A method with changes of the settings, and what is done to it after training."""

    method: Json
    changes: Json = field(default_factory=dict)
    fold: Fold | None = None
    reference: str | None = None
    """The row whose answers its own are compared with."""


SINGLE: Json = {"name": "single"}
DOUBLE: Json = {"precision": "64", "epochs": 1}
"""In double precision two trainings that are the same but for rounding stay together for so long, and longer."""
RATE = 0.5
"""Of dropout in table 5."""


def describe_inner(copies: int = COPIES, **options: object) -> Json:
    return {"name": "inner", "copies": copies} | options


def describe_maxout(copies: int = COPIES) -> Json:
    return {"name": "maxout", "copies": copies}


ROWS: dict[str, Row] = {
    IEN: Row(describe_inner()),
    MEAN: Row(describe_inner(), fold="mean", reference=IEN),
    INVERSE: Row(describe_inner(), fold="inverse variance", reference=IEN),
    DENSE: Row(describe_inner(include="*")),
    MAXOUT: Row(describe_maxout()),
    MAXOUT_FOLDED: Row(describe_maxout(), fold="inverse variance", reference=MAXOUT),
    BASE: Row(SINGLE),
    BASE_FOLDED: Row(SINGLE, fold="seeds"),
    SLOW: Row(SINGLE, {"convolution_gradients": 1 / COPIES}),
    FAST: Row(SINGLE, {"lr_factor": COPIES}),
    LEAN: Row(describe_inner(lean=True)),
    EXACT: Row(SINGLE, {"convolution_gradients": 1 / COPIES} | DOUBLE, reference="IEN, in double precision"),
    EXACT_LEAN: Row(describe_inner(lean=True), DOUBLE, reference="IEN, in double precision"),
    "IEN, in double precision": Row(describe_inner(), DOUBLE),
}


def build_cell(scale: str, network: str, row: Row, seed: int) -> Json:
    """The options of a cell that measures a row of a network with a seed."""
    cell: Json = {"seed": seed, "training": configure(scale, network, row.method, row.changes), "fold": row.fold}
    if row.fold == "seeds":
        cell["seeds"] = list(range(SEEDS[scale]))
    if row.reference is not None:
        reference = ROWS[row.reference]
        cell["reference"] = configure(scale, network, reference.method, reference.changes)
    return cell


def list_cells(scale: str, rows: dict[str, Row], networks: tuple[str, ...] | None = None) -> dict[str, Json]:
    """The cells of rows by network and seed. What is folded from all seeds has one cell, with the first seed."""
    return {
        f"{network}: {name}, seed {seed}": build_cell(scale, network, row, seed)
        for network in networks or NETWORKS[scale]
        for name, row in rows.items()
        for seed in range(1 if row.fold == "seeds" else SEEDS[scale])
    }
