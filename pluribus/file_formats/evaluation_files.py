"""The records of an evaluation: evaluation.json and, for a comparison, judgement.json."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ..core.errors import FileError
from .comparison_files import Cost, IntervalCalibration, Reliability, Residuals, RiskCoverage, UnsureRow
from .schema import RUN_CURE, Count, Curve, Number, Range, Schema, Scores, Size, Text

SHARED = ("scores", "shift")
"""What is compared between methods, and not only averaged over seeds."""


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
    """judgement.json. The keys after `tempered` are those of a classification; `noise`, `interval_calibration` and `residuals`
    are those of a regression."""

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
    is_noise_predicted: bool = False
    interval_calibration: IntervalCalibration | None = None
    residuals: Residuals | None = None
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


def check_alike(path: Path, judged: dict[str, dict[int, dict[str, Any]]]) -> None:
    """Raise FileError unless all runs in a folder, by method and seed, were judged by the same scores: they are averaged."""
    first = next(iter(next(iter(judged.values())).values()))
    for method, seeds in judged.items():
        own = next(iter(seeds.values()))
        for seed, one in seeds.items():
            compared = [list_keys(one) == list_keys(own), *(list_keys(one).get(k) == list_keys(first).get(k) for k in SHARED)]
            if not all(compared):
                raise FileError(
                    f"the judgement.json of {method}, seed {seed}, in {path} does not have the scores of the other runs: "
                    "delete it, and resume the comparison"
                )


def list_keys(value: dict[str, Any]) -> dict[str, Any]:
    """The keys of the mappings in a mapping, without their values.

    >>> list_keys({"rows": 3, "scores": {"nll": 0.1}})
    {'scores': {'nll': None}}
    """

    def strip(entry: Any) -> Any:
        return {key: strip(inner) for key, inner in entry.items()} if isinstance(entry, dict) else None

    return {key: strip(entry) for key, entry in value.items() if isinstance(entry, dict) and key != "tempered"}
