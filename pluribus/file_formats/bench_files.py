"""bench.json: the results of `pluribus bench`, as `pluribus.bench.results` describes them."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from .schema import Finite, NotNegative, Number, Schema, Size, Text


class BenchRun(Schema):
    """When and where rows were measured."""

    versions: dict[Text, Text] = Field(default={})
    machine: dict[Text, Text | int | list[Text] | None]
    settings: dict[Text, Any]

    @model_validator(mode="after")
    def _check_page(self) -> "BenchRun":
        missing = [name for name in ("repeats", "batch", "threads") if name not in self.settings]
        missing += [name for name in ("cpu",) if name not in self.machine]
        if missing:
            raise ValueError(f"it lacks {missing[0]}")
        return self


class Quartiles(Schema):
    """The median of the repeats and their middle half."""

    median: NotNegative
    low: NotNegative
    high: NotNegative


class TargetRow(Schema):
    network: Text
    work: Text
    name: Text
    value: NotNegative
    most: NotNegative | None
    met: bool | None
    time: Quartiles | None
    memory: Number
    flops: Number
    run: Text


class TableRow(Schema):
    network: Text
    method: Text
    work: Text
    time: Quartiles
    memory: Number
    flops: Number
    run: Text


class Point(Schema):
    at: Size
    time: Quartiles
    memory: Number
    flops: Number


class Line(Schema):
    slope: Finite
    intercept: Finite
    off: NotNegative
    at: Size


class Lines(Schema):
    time: Line
    memory: Line | None
    flops: Line | None


class GrowthRow(Schema):
    network: Text
    method: Text
    axis: Literal["M", "K"]
    work: Text
    points: list[Point]
    lines: Lines
    run: Text


class BenchFile(Schema):
    """bench.json."""

    holds: ClassVar[str] = "results of `pluribus bench`"
    cure: ClassVar[str] = "move the file away, or name another folder"

    format: Literal[1]
    runs: dict[Text, BenchRun]
    targets: list[TargetRow]
    table: list[TableRow]
    growth: list[GrowthRow]

    @model_validator(mode="after")
    def _check_runs(self) -> "BenchFile":
        named = [row.run for row in self.targets] + [row.run for row in self.table] + [row.run for row in self.growth]
        for run in named:
            if run not in self.runs:
                raise ValueError(f"a row is of the run {run!r}, which is not among its runs")
        return self
