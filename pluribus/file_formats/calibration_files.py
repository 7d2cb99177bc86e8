"""calibration.json: the rules for the answers of a run, which `pluribus calibrate` fits and `pluribus predict` obeys."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .schema import Number, Schema, Scores, Size, Text, Values

Level = Annotated[float, Field(gt=0, lt=1)]


class ClassificationRecord(Schema):
    """Rules for classes. A threshold that is None is infinite."""

    kind: Literal["classification"]
    rows: Size
    coverage: Level | None
    set_score: Literal["lac", "aps", "raps"]
    set_threshold: Number
    risk: Level | None
    delta: Level
    least_confidence: Number
    false_alarms: Level | None
    alarm_score: Literal["confidence", "entropy", "mutual-information", "energy", "distance"]
    alarm_threshold: Number


class RegressionRecord(Schema):
    """Rules for intervals."""

    kind: Literal["regression"]
    noise: Annotated[float, Field(ge=0)]
    coverage: Level
    scale: Literal["normalised", "absolute"]
    scores: Values
    is_noise_predicted: bool = False
    quantiles: Annotated[list[Level], Field(max_length=99)] = Field(default=[])


class CalibrationRecord(Schema):
    """The whole file. `weights` is the digest of the weights that the rules belong to, `checked` what they do on test rows, and
    `features` the digest of calibration.safetensors, which has what an alarm by the distance of features needs."""

    cure: ClassVar[str] = "fit the rules again with `pluribus calibrate`"

    weights: Text
    data: Text
    split: Text
    ood: Text | None
    rows: Size
    rules: Annotated[ClassificationRecord | RegressionRecord, Field(discriminator="kind")]
    checked: Scores | None
    features: Text | None = None
