"""The files of `pluribus bench tables`: settings.json, the cells' trials.json and found.json, and tables.json."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .schema import Count, Finite, NotNegative, Number, Positive, Schema, Size, Text, Texts

Options = dict[Text, int | float | Text]
CURE = "move the folder away, or name another one with --out"


class TestScores(Schema):
    """Scores on test rows; None is NaN or infinite."""

    __test__ = False  # pytest would take it for tests

    rmse: Number
    nll: Number
    crps: Number
    coverage: Number


class Trial(Schema):
    options: Options
    seconds: NotNegative
    validation_rmse: Number
    scores: TestScores


class TrialsFile(Schema):
    """trials.json: the trials of a cell so far."""

    cure: ClassVar[str] = "remove its cell, whose trials are then run again"

    trials: list[Trial]


class Quartiles(Schema):
    """The median of the repeats and their middle half."""

    median: NotNegative
    low: NotNegative
    high: NotNegative


class Sizes(Schema):
    train: Size
    validation: Size
    test: Size


class CellFile(Schema):
    """found.json: what a cell found."""

    cure: ClassVar[str] = "remove its cell, which is then run again"

    table: Text
    split: Count
    contender: Text
    rows: Sizes
    trials: Annotated[list[Trial], Field(min_length=1)]
    chosen: Count
    scores: TestScores
    train_seconds: NotNegative
    base_train_seconds: Positive
    predict: Quartiles


class SettingsFile(Schema):
    """settings.json: what every cell of a folder shares."""

    cure: ClassVar[str] = CURE

    trials: Size
    epochs: Size
    patience: Size
    trees: Size
    tree_patience: Size
    rows: Size | None


class Taking(Schema):
    """A contender: its name and title, whether it is ours, and why it has no rank, if it has none."""

    name: Text
    title: Text
    ours: bool
    reason: Text


class Rank(Schema):
    rank: Finite
    low: Finite
    high: Finite
    tables: dict[Text, Finite]


class Leads(Schema):
    tables: dict[Text, dict[Text, Texts]]
    pairs: dict[Text, Texts]
    leader: Text | None


class TablesFile(Schema):
    """tables.json."""

    holds: ClassVar[str] = "results of `pluribus bench tables`"
    cure: ClassVar[str] = CURE

    format: Literal[1]
    versions: dict[Text, Text]
    machine: dict[Text, Any]
    settings: SettingsFile
    contenders: list[Taking]
    cells: list[CellFile]
    ranks: dict[Text, dict[Text, Rank]]
    leads: dict[Text, Leads]
