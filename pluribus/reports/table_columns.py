"""The columns of the table of scores: where each value is found, how it is formatted, and which values are better."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from .values import Kind, Value, get_nested, read_value

Mark = Literal["best", "level", ""]
ANY, POSITIVE, PART = (-math.inf, math.inf), (0.0, math.inf), (0.0, 1.0)
"""What a value can be."""


@dataclass(frozen=True)
class Column:
    """One column. `better` is "high", "low", or the target that values should come close to."""

    key: str
    title: str
    path: tuple[str, ...]
    kind: Kind
    better: Literal["high", "low"] | float
    about: str
    unit: str = ""
    limits: tuple[float, float] = ANY
    """What a value can be; intervals of few seeds reach beyond."""

    def read(self, method: dict[str, Any]) -> Value | None:
        """Return the value of one method, or None."""
        found = read_value(method, *self.path)
        return found if found is None or self.limits == ANY else found._replace(limits=self.limits)

    def is_not_finite(self, method: dict[str, Any]) -> bool:
        """Whether the value of one method was computed, and is NaN or infinite."""
        found = get_nested(method, *self.path)
        return isinstance(found, dict) and bool({"mean", "value"} & found.keys()) and self.read(method) is None

    def loss(self, x: float) -> float:
        """Return a number that is smaller for better values."""
        if self.better == "high":
            return -x
        return x if self.better == "low" else abs(x - self.better)


CLASSIFICATION = (
    Column("accuracy", "accuracy", ("scores", "accuracy"), "percent", "high", "share of right answers", "%", PART),
    Column(
        "calibrated_nll",
        "calibrated NLL",
        ("scores", "calibrated_nll"),
        "score",
        "low",
        "NLL at the best temperature, which is fitted on other rows; this decides",
        limits=POSITIVE,
    ),
    Column("nll", "NLL", ("scores", "nll"), "score", "low", "negative log-likelihood of the truth, in nats", "", POSITIVE),
    Column("ece", "ECE", ("scores", "ece"), "percent", "low", "expected calibration error", "%", PART),
    Column("brier", "Brier", ("scores", "brier"), "score", "low", "squared distance from the truth, from 0 to 2", "", (0, 2)),
)
REGRESSION = (
    Column("rmse", "RMSE", ("scores", "rmse"), "small", "low", "root mean squared error, in the target's units", "", POSITIVE),
    Column(
        "calibrated_nll",
        "calibrated NLL",
        ("scores", "calibrated_nll"),
        "score",
        "low",
        "NLL at the best noise variance, which is fitted on other rows; this decides",
    ),
    Column("nll", "NLL", ("scores", "nll"), "score", "low", "negative log-likelihood of the truth, in nats"),
    Column("pinball", "pinball", ("scores", "pinball"), "small", "low", "pinball loss of the learnt quantiles", "", POSITIVE),
    Column("crps", "CRPS", ("scores", "crps"), "small", "low", "continuous ranked probability score, in the target's units"),
    Column("coverage_50", "in 50 %", ("scores", "coverage_50"), "percent", 0.5, "truths inside the middle 50 %", "%", PART),
    Column("coverage_95", "in 95 %", ("scores", "coverage_95"), "percent", 0.95, "truths inside the middle 95 %", "%", PART),
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
ANSWER_COSTS = tuple(column for column in COSTS if column.key != "training_flops")
"""What the table shows; figures show all costs."""
STORED = Column("parameters", "stored", ("cost", "parameters"), "ratio", "low", "parameters as stored, × one network")
"""The table has it where some method is deployed with more or fewer parameters than it stores."""
EQUIVALENTS = Column(
    "equivalents",
    "equivalents",
    ("equivalents",),
    "equivalents",
    "high",
    "how many independent networks have as low a calibrated NLL, with its 95 % interval",
)
SHARE = Column(
    "share",
    "share of gain",
    ("share",),
    "share",
    "high",
    "what part of the deep ensemble's gain in NLL over one network it reaches, with its 95 % interval",
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
        PART,
    ),
    Column("mce", "mCE", ("shift", "mce"), "ratio", "low", "mean corruption error: errors on corrupted images, × one network"),
)
UNCERTAINTIES = ("confidence", "entropy", "mutual-information")
"""Scores by which out-of-distribution rows are detected; the table has the first that any method has."""


def select_columns(results: dict[str, Any]) -> list[Column]:
    """Return the columns in which at least one method has a value, be it one that is not finite."""
    methods = results["methods"]
    scores = REGRESSION if is_regression(results) else CLASSIFICATION
    ood_sets = dict.fromkeys(name for method in methods for name in method.get("ood") or {})
    detection = [
        Column(
            f"auroc_{name}",
            f"AUROC {shorten_source(name)}",
            ("ood", name, "auroc", uncertainty),
            "percent",
            "high",
            _describe_detection(name, uncertainty),
            "%",
            PART,
        )
        for name in ood_sets
        if (uncertainty := find_uncertainty(methods, name))
    ]
    known = (*scores, EQUIVALENTS, SHARE, *ANSWER_COSTS, *([STORED] if has_two_sizes(results) else []), *SHIFT, *detection)
    return [column for column in known if any(column.read(method) or column.is_not_finite(method) for method in methods)]


def shorten_source(name: str) -> str:
    """The name of a data set, or the last part of its path, without options, as a heading shows it.

    >>> shorten_source("svhn"), shorten_source("/data/photos/street.npz"), shorten_source("night/:size=32")
    ('svhn', 'street.npz', 'night')
    """
    path = PurePath(name.partition(":")[0])
    return path.name or name


def has_two_sizes(results: dict[str, Any]) -> bool:
    """Whether a method is deployed with another number of parameters than it stores; older results showed one size."""
    pairs = [(read_value(m, "cost", "parameters"), read_value(m, "cost", "deployed_parameters")) for m in results["methods"]]
    return "decided_by" in results and any(a and b and abs(a.value - b.value) >= 0.005 for a, b in pairs)


def is_regression(results: dict[str, Any]) -> bool:
    """Whether the data are those of a regression."""
    return bool((results.get("data") or {}).get("task") == "regression")


def find_uncertainty(methods: list[dict[str, Any]], name: str) -> str | None:
    return next(
        (
            uncertainty
            for uncertainty in UNCERTAINTIES
            if any(read_value(method, "ood", name, "auroc", uncertainty) for method in methods)
        ),
        None,
    )


def _describe_detection(name: str, uncertainty: str) -> str:
    return f"how well {uncertainty.replace('-', ' ')} separates {name} from the test rows; 50 % is chance"


def mark_column(column: Column, methods: Sequence[dict[str, Any]]) -> list[Mark]:
    """Mark the best methods of a column.

    A network that guesses is well calibrated, too: calibration errors are marked only among the methods whose accuracy is at
    least the median.
    """
    values = [column.read(method) for method in methods]
    if column.key == "ece":
        right = [read_value(method, "scores", "accuracy") for method in methods]
        least = statistics.median([v.value for v in right if v is not None] or [0.0])
        values = [value if v is None or v.value >= least else None for value, v in zip(values, right, strict=True)]
    return mark_best(column, values)


def mark_best(column: Column, values: Sequence[Value | None]) -> list[Mark]:
    """Mark the best value of a column, and those level with it: they lie in the range of the best.

    Their own ranges do not count: else a method would be level because its runs differ much.

    >>> accuracy = CLASSIFICATION[0]
    >>> mark_best(accuracy, [Value(0.90, std=0.01), Value(0.91, std=0.01), Value(0.80, std=0.2), None])
    ['level', 'best', '', '']
    """
    known = [v for v in values if v is not None]
    if len({v.value for v in known}) < 2:
        return [""] * len(values)
    best = min(known, key=lambda v: column.loss(v.value))
    if column is SHARE and best.value <= 0:
        return [""] * len(values)  # no method gains anything
    if best.reach is None and column not in (*COSTS, STORED):
        return [""] * len(values)  # one run: the size of a random difference is unknown

    def mark(v: Value | None) -> Mark:
        if v is None:
            return ""
        if v.value == best.value:
            return "best"
        return "level" if best.reach is not None and best.reach[0] <= v.value <= best.reach[1] else ""

    return [mark(v) for v in values]
