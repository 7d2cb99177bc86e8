"""The records of a run: about.json, data.json, result.json and metrics.csv. Its config.yaml is a `runs.config.Config`."""

import csv
import io
import itertools
import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ..core.errors import FileError
from .reading import read_text
from .schema import RUN_CURE, Count, Finite, NotNegative, Positive, Schema, Scores, Size, Text, Texts

LARGEST_ROW = 10**8
"""Numbers in one row of data: more are refused, as a network of that size would fill the memory."""
LARGEST_METRICS = 16 * 2**20

Facts = Annotated[dict[Text, Any], Field(max_length=1000)]


class About(Schema):
    """about.json: versions and machine."""

    cure: ClassVar[str] = RUN_CURE

    versions: dict[Text, Text]
    machine: dict[Text, Text | int | list[Text] | None]


class RowsPreparation(Schema):
    """Rows that are used as they are."""

    kind: Literal["rows"]
    target: tuple[Finite, Positive] = Field(strict=False)


class PixelsPreparation(Schema):
    """Images: the mean and the standard deviation of each channel."""

    kind: Literal["pixels"]
    target: tuple[Finite, Positive] = Field(strict=False)
    mean: Annotated[list[Finite], Field(min_length=1, max_length=10_000)]
    std: Annotated[list[Positive], Field(min_length=1, max_length=10_000)]

    @model_validator(mode="after")
    def _check_channels(self) -> "PixelsPreparation":
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean and std must have one number a channel, got {len(self.mean)} and {len(self.std)}")
        return self


Column = tuple[Text, Literal["number", "category"], Finite, Positive, Texts, bool]
"""Name, kind, mean, standard deviation, categories, and whether values were missing in training."""

Quantiles = tuple[list[Finite], list[Finite]]
"""Rising values of a column, and their normal scores."""


class ColumnsPreparation(Schema):
    """A table: the encoding of each column."""

    kind: Literal["columns"]
    target: tuple[Finite, Positive] = Field(strict=False)
    columns: Annotated[list[Annotated[Column, Field(strict=False)]], Field(max_length=1_000_000)]
    answer: Text
    classes: Texts
    quantiles: Annotated[list[Annotated[Quantiles, Field(strict=False)]], Field(max_length=1_000_000)] = Field(default=[])

    def count_features(self) -> int:
        return sum((len(c[4]) if c[1] == "category" else 1) + c[5] for c in self.columns)

    @model_validator(mode="after")
    def _check_quantiles(self) -> "ColumnsPreparation":
        if self.quantiles and len(self.quantiles) != len(self.columns):
            raise ValueError(f"quantiles of {len(self.quantiles)} columns do not fit {len(self.columns)} columns")
        for column, (values, scores) in zip(self.columns, self.quantiles, strict=False):
            if len(values) != len(scores) or (column[1] == "number") != bool(values):
                raise ValueError(f"the quantiles of column {column[0]!r} must be as many values as scores")
            if any(low >= high for low, high in itertools.pairwise(values)):
                raise ValueError(f"the quantiles of column {column[0]!r} must rise")
        return self


class DataRecord(Schema):
    """data.json: how rows become inputs, and the names of the classes."""

    cure: ClassVar[str] = RUN_CURE

    name: Text
    task: Literal["classification", "regression"]
    shape: Annotated[list[Size], Field(min_length=1, max_length=8)]
    classes: Texts
    preparation: Annotated[RowsPreparation | PixelsPreparation | ColumnsPreparation, Field(discriminator="kind")]
    train: Count
    test: Count
    facts: Facts

    @model_validator(mode="after")
    def _check_agreement(self) -> "DataRecord":
        if math.prod(self.shape) > LARGEST_ROW:
            raise ValueError(f"a row must have at most {LARGEST_ROW:,} numbers, its shape is {self.shape}")
        if (self.task == "classification") != bool(self.classes):
            raise ValueError(f"a {self.task} must have {'some' if self.task == 'classification' else 'no'} classes")
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("it names a class twice")
        channels, preparation = self.shape[0], self.preparation
        if isinstance(preparation, PixelsPreparation) and (len(self.shape) != 3 or len(preparation.mean) not in (1, channels)):
            raise ValueError(f"{len(preparation.mean)} means do not fit images of the shape {self.shape}")
        if isinstance(preparation, ColumnsPreparation):
            if self.shape != [preparation.count_features()]:
                raise ValueError(f"columns of {preparation.count_features()} numbers do not fit the shape {self.shape}")
            if preparation.classes != self.classes:
                raise ValueError("it names other classes for the columns than for the run")
        return self


class Result(Schema):
    """result.json: the scores of a finished run."""

    cure: ClassVar[str] = RUN_CURE

    title: Text
    split: Literal["test", "validation"] | None
    scores: Scores
    not_finite: Count = 0
    parameters: Count
    base_parameters: Count
    epochs: Count
    steps: Count
    seconds: NotNegative
    decay_from: NotNegative | None = None
    """Epochs after which the learning rate of a `wsd` schedule fell; None if it did not, or has another schedule."""
    still_improving: bool | None = None
    """Whether the validation score was still improving then."""
    caveat: Text | None = None
    """What stood in the way of its training, in a sentence; None if nothing is known to."""
    metrics: Text | None = None
    """The digest of metrics.csv; None if there is no such file, or an earlier version wrote it."""


def read_metrics(path: Path) -> list[dict[str, float]]:
    """The rows of metrics.csv, one for each epoch, without empty cells. Raises FileError if a cell is no number."""
    try:
        rows = csv.DictReader(io.StringIO(read_text(path, LARGEST_METRICS)))
        table = [{name: float(cell) for name, cell in row.items() if cell} for row in rows]
        if "epoch" not in (rows.fieldnames or ["epoch"]) or any("epoch" not in row for row in table):
            raise ValueError("has a row without an epoch")
    except (ValueError, TypeError, AttributeError, csv.Error) as error:
        raise FileError(f"{path} is damaged, it must hold a number in every cell: {RUN_CURE}") from error
    return table
