"""The records of `pluribus reproduce`: the result of a recipe, what one cell measured, and a training that recipes share."""

from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from pydantic import Field

from .schema import Count, NotNegative, Schema, Text, Texts

Measured = TypeVar("Measured")
"""The schema of what a cell of one recipe measured, which stands in the recipe."""

Json = dict[Text, Any]
Row = dict[Text, Text | float | int | bool | None]


class PaperCell(Schema, Generic[Measured]):
    """found.json, and each cell of a recorded result: `PaperCell[schema]` also checks what the cell measured, `found`."""

    cure: ClassVar[str] = "delete it to measure the cell again"

    options: Json
    seconds: NotNegative
    about: Json
    found: Measured


class PaperVerdict(Schema):
    claim: Text
    outcome: Literal[
        "reproduced", "direction reproduced", "not reproduced", "not decided at this scale", "not run at this scale"
    ]
    rule: Text
    evidence: Text


class PaperResult(Schema, Generic[Measured]):
    """<artefact>.<scale>.json, as `pluribus.papers.results` describes it: `PaperResult[schema]` also checks its cells."""

    holds: ClassVar[str] = "what `pluribus reproduce` leaves"
    cure: ClassVar[str] = "move it away, or name another --out"

    format: Literal[1]
    id: Text
    title: Text
    question: Text
    source: Text
    scale: Literal["smoke", "cpu", "paper"]
    about: Text
    untold: dict[Text, Text]
    departures: Texts
    complete: bool
    seeds: list[Count]
    seconds: NotNegative
    columns: dict[Text, Text]
    rows: list[Row]
    paper: list[Row]
    verdicts: list[PaperVerdict]
    figure: bool
    earlier: bool = False
    cells: dict[Text, PaperCell[Measured]]


def build_cell_schema(measured: type[Schema]) -> type[Schema]:
    """The schema of a cell whose `found` is as `measured` says."""
    return cast(type[Schema], PaperCell.__class_getitem__(measured))


def build_result_schema(measured: type[Schema]) -> type[Schema]:
    """The schema of a result whose cells measured what `measured` says."""
    return cast(type[Schema], PaperResult.__class_getitem__(measured))


class SharedTraining(Schema):
    """trained.json: a training that several recipes need."""

    cure: ClassVar[str] = "delete its folder to train again"

    training: Json
    history: list[Json]
    phases: list[Json]
    watched: list[Json]
    bounds: list[Json] = Field(default_factory=list)
