"""The records of an evaluation: evaluation.json and, for a comparison, judgement.json."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from .comparison_files import Cost, Reliability, RiskCoverage, UnsureRow
from .schema import RUN_CURE, Count, Curve, Number, Range, Schema, Scores, Size, Text


class KindOfShift(Schema):
    """The scores at each severity of one corruption."""

    accuracy: Curve
    nll: Curve
    ece: Curve


class Shift(Schema):
    cacc: Number
    cnll: Number
    cece: Number
    mce: Number = None
    rows: Count
    clean: Scores
    kinds: dict[Text, KindOfShift]


class OutOfDistribution(Schema):
    rows: Count
    how: Text
    auroc: Scores
    fpr95: Scores


class AttackCurves(Schema):
    success: Curve
    entropy: Curve
    final: Number
    final_entropy: Number


class Attack(AttackCurves):
    title: Text
    rows: Count
    one_sample: AttackCurves | None


class Judgement(Schema):
    """judgement.json. The keys after `tempered` are those of a classification; `noise` is that of a regression."""

    cure: ClassVar[str] = RUN_CURE

    rows: Size
    members: Size
    not_finite: Count = 0
    scores: Scores
    intervals: dict[Text, Range]
    member_scores: Scores
    diversity: Scores
    tempered: Scores | None
    noise: Number = None
    reliability: Reliability | None = None
    risk_coverage: RiskCoverage | None = None
    unsure: Annotated[list[UnsureRow], Field(max_length=1000)] = Field(default=[])
    shift: Shift | None = None
    ood: dict[Text, OutOfDistribution] = Field(default={})
    attack: Attack | None = None


class EvaluationRecord(Judgement):
    """evaluation.json."""

    run: Text
    title: Text
    data: Text
    split: Literal["train", "validation", "test", "all"]
    cost: Cost | None


def list_keys(value: Any) -> Any:
    """The keys of nested mappings, without their values: records that are averaged must agree in them."""
    return {key: list_keys(entry) for key, entry in value.items()} if isinstance(value, dict) else None
