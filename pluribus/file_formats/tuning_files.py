"""The records of a comparison's tuning: trial.json of each trial, and tuning.json with what was chosen."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .schema import COMPARISON_CURE, Count, Curve, NotNegative, Number, Schema, Size, Text

Values = Annotated[dict[Text, Any], Field(max_length=1000)]
"""Values by the names of options or settings. `runs.config` checks those that are used."""


class TrialRecord(Schema):
    """trial.json: how a trial ended."""

    cure: ClassVar[str] = COMPARISON_CURE

    state: Literal["complete", "pruned", "failed"]
    score: Number
    """Of the validation rows; smaller is better. None if the trial failed, or if its answers are not finite."""
    epochs: Count
    seconds: NotNegative
    curve: Curve
    """The validation score after each epoch, by which trials are stopped early."""
    reason: Text = ""
    """Why it failed."""


class Trial(Schema):
    """A trial in tuning.json: what it tried instead of the defaults, and how it ended."""

    options: Values
    settings: Values
    state: Literal["complete", "pruned", "failed"]
    score: Number
    epochs: Count
    seconds: NotNegative
    reason: Text = ""


class TunedMethod(Schema):
    """The trials of one method, of which the first is the default configuration; none, if it is `trained_as` another one."""

    name: Text
    trained_as: Text | None = None
    """The method whose chosen settings it is trained with, if it has no trials of its own."""
    spec: Text
    """The spec that was chosen."""
    chosen: Count
    """Which of the trials was chosen."""
    trials: Annotated[list[Trial], Field(max_length=10_000)]


class TuningFile(Schema):
    """tuning.json, and `tuning` in results.json."""

    cure: ClassVar[str] = COMPARISON_CURE

    trials: Size
    """How many trials each method may have."""
    seed: Count
    score: Literal["calibrated_nll", "nll", "pinball", "rmse"]
    methods: Annotated[list[TunedMethod], Field(min_length=1, max_length=10_000)]
