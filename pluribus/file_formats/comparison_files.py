"""The records of a comparison: grid.yaml, compare.yaml, costs.json and results.json, which `pluribus.reports` describes."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from .schema import COMPARISON_CURE, RUN_CURE, Count, Curve, MappingSchema, NotNegative, Number, Schema, Size, Text, Texts
from .tuning_files import TuningFile

Settings = dict[Text, Any]
"""Checked by `runs.config.Config`, or by `runs.evaluation.EvaluationSettings`."""
MOST_POINTS = 200
"""Of a learning curve."""
PNG = r"^data:image/png;base64,[A-Za-z0-9+/=]*$"
"""A picture is part of the file: a page that is made of it loads nothing from elsewhere."""


class CellSettings(Schema):
    """The settings of one run, which `runs.config.Config` checks."""

    model_config = ConfigDict(extra="allow")

    data: Any
    method: Any
    seed: Any


class GridFile(MappingSchema[CellSettings]):
    """grid.yaml: the settings of each run by its name."""

    cure: ClassVar[str] = COMPARISON_CURE


class ConfigFile(MappingSchema[Any]):
    """config.yaml of a run: its settings."""

    cure: ClassVar[str] = RUN_CURE


class TuningPlan(Schema):
    """How methods are tuned: the trials of each method, and the score that decides between them."""

    trials: Size
    score: Literal["calibrated_nll", "nll", "pinball", "rmse"]


class CompareFile(Schema):
    """compare.yaml: how runs are compared."""

    cure: ClassVar[str] = COMPARISON_CURE

    budget: Literal["epochs", "training-flops", "deployed-flops", "parameters"]
    judging: Settings
    command: Text
    notes: Texts
    tune: TuningPlan | None = None


class Interval(Schema):
    value: Number
    low: Number
    high: Number


class Equivalents(Interval):
    """How many independent networks answer as well; `most` were compared with."""

    below: bool
    above: bool
    most: Size


class ReferenceCurve(Schema):
    """The NLL of deep ensembles of 1, 2, … networks, and their latency."""

    method: Text
    nll: Annotated[list[Interval], Field(min_length=1, max_length=10_000)]
    latency: Curve | None


class Cost(Schema):
    """What an ensemble costs, as ratios to its base network."""

    parameters: NotNegative
    deployed_parameters: NotNegative
    flops: Number
    deployed_flops: Number
    training_flops: Number
    memory: NotNegative
    latency: Interval
    form: Literal["folded", "ensemble"]
    passes: Count | None


class CostsFile(MappingSchema[Cost]):
    """costs.json: the cost of each method by its name."""

    cure: ClassVar[str] = COMPARISON_CURE


# --- results.json -----------------------------------------------------------------------------------------------------


class Summary(Schema):
    """A number over seeds."""

    mean: Number
    std: Number
    seeds: Curve
    low: Number = None
    high: Number = None


Summaries = dict[Text, Summary]


class Reliability(Schema):
    confidence: Curve
    accuracy: Curve
    count: list[Count]


class IntervalCalibration(Schema):
    """The levels of central intervals, and the share of the targets that those of each level hold."""

    level: Curve
    held: Curve


class Residuals(Schema):
    """Predicted values and targets of some rows, in the unit of the `target`, which is its name if it has one."""

    predicted: Curve
    truth: Curve
    target: Text | None = None


class RiskCoverage(Schema):
    coverage: Curve
    risk: Curve


class UnsureRow(Schema):
    """A row with a low confidence."""

    image: Annotated[str, Field(pattern=PNG)] | None
    truth: Text
    answer: Text | None
    confidence: Number


class ShiftSummary(Schema):
    cacc: Summary
    cnll: Summary
    cece: Summary
    mce: Summary | None = None
    severities: dict[Text, Curve]
    kinds: Summaries


class DetectionSummary(Schema):
    auroc: Summaries
    fpr95: Summaries


class AttackSummary(Schema):
    success: Curve
    entropy: Curve
    final: Summary


class WholeAttackSummary(AttackSummary):
    title: Text
    one_sample: AttackSummary | None


class LearningCurve(Schema):
    """The validation score of one run after some of its epochs, and how the run ended."""

    seed: Count
    epochs: Annotated[list[Count], Field(max_length=MOST_POINTS)]
    scores: Annotated[list[Number], Field(max_length=MOST_POINTS)]
    decay_from: NotNegative | None
    still_improving: bool | None

    @model_validator(mode="after")
    def _check_points(self) -> "LearningCurve":
        if len(self.epochs) != len(self.scores):
            raise ValueError(f"a learning curve must have one score an epoch, got {len(self.scores)} for {len(self.epochs)}")
        return self


class Training(Schema):
    """How the runs of a method were trained."""

    score: Literal["calibrated_nll", "nll", "pinball", "rmse"]
    epochs: Summary
    curves: Annotated[list[LearningCurve], Field(max_length=10_000)]


class Method(Schema):
    """One method of a comparison."""

    name: Text
    spec: Text
    about: Text
    equivalence: Text | None = None
    epochs: Count | NotNegative
    model: Settings | None = None
    teacher: Text | None = None
    members: Size
    not_finite: Count = 0
    scores: Summaries
    member_scores: Summaries
    diversity: Summaries
    tempered: Summaries | None
    reliability: Reliability | None
    risk_coverage: RiskCoverage | None
    interval_calibration: IntervalCalibration | None = None
    residuals: Residuals | None = None
    shift: ShiftSummary | None
    ood: dict[Text, DetectionSummary]
    attack: WholeAttackSummary | None
    unsure: Annotated[list[UnsureRow], Field(max_length=1000)]
    gain: Interval | None
    share: Interval | None
    equivalents: Equivalents | None = None
    cost: Cost | None
    seconds: Summary
    runs: Texts
    training: Training | None = None


class DataFacts(Schema):
    name: Text
    task: Literal["classification", "regression"]
    classes: Texts
    shape: list[Size]
    train: Count
    test: Count


class Budget(Schema):
    kind: Literal["epochs", "training-flops", "deployed-flops", "parameters"]
    text: Text


class Recommendation(Schema):
    limit: Text
    method: Text | None
    text: Text


class Results(Schema):
    """results.json."""

    holds: ClassVar[str] = "the results of a comparison"
    cure: ClassVar[str] = "name the folder of a finished comparison, or its results.json"

    format: Literal[1]
    title: Text
    command: Text
    data: DataFacts
    judged_by: Literal["test", "validation"]
    decided_by: Literal["calibrated_nll", "nll"] | None = None
    model: Text
    budget: Budget
    seeds: list[Count]
    settings: Settings
    seconds: Number
    methods: Annotated[list[Method], Field(min_length=1, max_length=10_000)]
    reference_curve: ReferenceCurve | None = None
    recommendation: Annotated[list[Recommendation], Field(max_length=1000)]
    notes: Texts
    versions: dict[Text, Text]
    machine: dict[Text, Text | int | list[Text] | None]
    tuning: TuningFile | None = None
