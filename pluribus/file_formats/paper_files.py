"""The records of `pluribus reproduce`: the result of a recipe, what one cell measured, and a training that recipes share."""

from typing import Any, ClassVar, Literal

from .schema import Count, NotNegative, Schema, Texts

Json = dict[str, Any]
Row = dict[str, str | float | int | bool | None]


class PaperCell(Schema):
    """found.json, and each cell of a recorded result. What it measured, `found`, is known to its recipe alone."""

    cure: ClassVar[str] = "delete it to measure the cell again"

    options: Json
    seconds: NotNegative
    about: Json
    found: Any


class PaperVerdict(Schema):
    claim: str
    outcome: Literal["reproduced", "direction reproduced", "not reproduced", "not run at this scale"]
    rule: str
    evidence: str


class PaperResult(Schema):
    """<artefact>.<scale>.json, as `pluribus.papers.results` describes it."""

    holds: ClassVar[str] = "what `pluribus reproduce` leaves"
    cure: ClassVar[str] = "move it away, or name another --out"

    format: Literal[1]
    id: str
    title: str
    question: str
    source: str
    scale: Literal["smoke", "cpu", "paper"]
    about: str
    untold: dict[str, str]
    departures: Texts
    complete: bool
    seeds: list[Count]
    seconds: NotNegative
    columns: dict[str, str]
    rows: list[Row]
    paper: list[Row]
    verdicts: list[PaperVerdict]
    figure: bool
    cells: dict[str, PaperCell]


class SharedTraining(Schema):
    """trained.json: a training that several recipes need."""

    cure: ClassVar[str] = "delete its folder to train again"

    training: Json
    history: list[Json]
    phases: list[Json]
    watched: list[Json]
