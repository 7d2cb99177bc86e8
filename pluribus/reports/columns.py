"""The columns of the table: where a value is found, how it is written, and what is good."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .values import Kind, Value, read_value

Mark = Literal["best", "level", ""]


@dataclass(frozen=True)
class Column:
    """`better` is "high", "low", or the value that is best to come close to."""

    key: str
    title: str
    path: tuple[str, ...]
    kind: Kind
    better: Literal["high", "low"] | float
    about: str
    unit: str = ""

    def of(self, method: dict[str, Any]) -> Value | None:
        return read_value(method, *self.path)

    def loss(self, x: float) -> float:
        """Smaller is better."""
        if self.better == "high":
            return -x
        return x if self.better == "low" else abs(x - self.better)


CLASSIFICATION = (
    Column("accuracy", "accuracy", ("scores", "accuracy"), "percent", "high", "share of right answers", "%"),
    Column("nll", "NLL", ("scores", "nll"), "score", "low", "negative log-likelihood of the truth, in nats"),
    Column("ece", "ECE", ("scores", "ece"), "percent", "low", "expected calibration error", "%"),
    Column("brier", "Brier", ("scores", "brier"), "score", "low", "squared distance from the truth, from 0 to 2"),
)
REGRESSION = (
    Column("rmse", "RMSE", ("scores", "rmse"), "small", "low", "root mean squared error, in the target's units"),
    Column("nll", "NLL", ("scores", "nll"), "score", "low", "negative log-likelihood of the truth, in nats"),
    Column("crps", "CRPS", ("scores", "crps"), "small", "low", "continuous ranked probability score, in the target's units"),
    Column("coverage_50", "in 50 %", ("scores", "coverage_50"), "percent", 0.5, "truths inside the middle 50 %", "%"),
    Column("coverage_95", "in 95 %", ("scores", "coverage_95"), "percent", 0.95, "truths inside the middle 95 %", "%"),
)
COSTS = (
    Column("latency", "latency", ("cost", "latency"), "ratio", "low", "time of one answer as deployed, × one network"),
    Column(
        "deployed_flops", "FLOPs", ("cost", "deployed_flops"), "ratio", "low", "FLOPs of one answer as deployed, × one network"
    ),
    Column(
        "deployed_parameters",
        "parameters",
        ("cost", "deployed_parameters"),
        "ratio",
        "low",
        "parameters as deployed, × one network",
    ),
    Column("training_flops", "training FLOPs", ("cost", "training_flops"), "ratio", "low", "FLOPs of training, × one network"),
)
SHARE = Column(
    "share",
    "share of gain",
    ("share",),
    "share",
    "high",
    "what part of the deep ensemble's lower NLL it reaches, with its 95 % interval",
    "%",
)
SHIFT = (
    Column(
        "cacc",
        "cAcc",
        ("shift", "cacc"),
        "percent",
        "high",
        "accuracy on corrupted images, mean over the 15 standard kinds and five severities",
        "%",
    ),
    Column("mce", "mCE", ("shift", "mce"), "ratio", "low", "mean corruption error: errors on corrupted images, × one network"),
)
UNCERTAINTIES = ("confidence", "entropy", "mutual-information")
"""What may tell foreign rows from known ones; the first that all have goes into the table."""


def select_columns(results: dict[str, Any]) -> list[Column]:
    """Those for which at least one method has a value."""
    methods = results["methods"]
    scores = REGRESSION if is_regression(results) else CLASSIFICATION
    foreign = dict.fromkeys(name for method in methods for name in method.get("ood") or {})
    detection = [
        Column(
            f"auroc_{name}",
            f"AUROC {name}",
            ("ood", name, "auroc", doubt),
            "percent",
            "high",
            _describe_detection(name, doubt),
            "%",
        )
        for name in foreign
        if (doubt := find_uncertainty(methods, name))
    ]
    known = (*scores, SHARE, *COSTS[:3], *SHIFT, *detection)
    return [column for column in known if any(column.of(method) for method in methods)]


def is_regression(results: dict[str, Any]) -> bool:
    return bool((results.get("data") or {}).get("task") == "regression")


def find_uncertainty(methods: list[dict[str, Any]], name: str) -> str | None:
    return next(
        (doubt for doubt in UNCERTAINTIES if any(read_value(method, "ood", name, "auroc", doubt) for method in methods)), None
    )


def _describe_detection(name: str, doubt: str) -> str:
    return f"how well {doubt.replace('-', ' ')} tells {name} from one's own rows; 50 % is chance"


def mark_best(column: Column, values: Sequence[Value | None]) -> list[Mark]:
    """Which is best, and which are level with it: their reach overlaps that of the best, so no difference is claimed."""
    known = [v for v in values if v is not None]
    if len({v.value for v in known}) < 2:
        return [""] * len(values)
    best = min(known, key=lambda v: column.loss(v.value))
    if column is SHARE and best.value <= 0:
        return [""] * len(values)  # the best of losses is no gain
    if best.reach is None and column not in COSTS:
        return [""] * len(values)  # of one run, nobody knows what a difference is worth

    def mark(v: Value | None) -> Mark:
        if v is None:
            return ""
        if v.value == best.value:
            return "best"
        return "level" if _overlaps(v.reach, best.reach) else ""

    return [mark(v) for v in values]


def _overlaps(a: tuple[float, float] | None, b: tuple[float, float] | None) -> bool:
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]
