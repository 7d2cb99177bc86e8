"""What a server counts and measures, for Prometheus."""

from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ..decisions.classification import FOREIGN, WITHHELD

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServerMetrics:
    """The counters of one server; two servers in one process do not share them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, processor time and open files
        own: Any = {"registry": self.registry, "namespace": "pluribus"}
        self.requests = Counter("requests", "requests for predictions, by the status code of the answer", ["status"], **own)
        self.rows = Counter("rows", "rows that were answered, by what was said about them", ["said"], **own)
        self.request_seconds = Histogram("request_seconds", "from the first byte to the answer", buckets=SECONDS, **own)
        self.run_seconds = Histogram("run_seconds", "of one run of the model", buckets=SECONDS, **own)
        self.run_rows = Histogram("run_rows", "rows of one run of the model", buckets=ROWS, **own)
        self.waiting_rows = Gauge("waiting_rows", "rows that wait for the model", **own)

    def count_request(self, status: int, seconds: float) -> None:
        """Count one request for predictions."""
        self.requests.labels(str(status)).inc()
        self.request_seconds.observe(seconds)

    def count_run(self, rows: int, seconds: float) -> None:
        """Count one run of the model."""
        self.run_rows.observe(rows)
        self.run_seconds.observe(seconds)

    def count_answers(self, answers: Sequence[dict[str, Any]]) -> None:
        """Count rows by what was said about them."""
        for answer in answers:
            self.rows.labels(name_outcome(answer)).inc()

    def format(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self.registry)


def name_outcome(answer: dict[str, Any]) -> str:
    """What was said about a row, as a word: one of few, whatever the classes are called.

    >>> name_outcome({"label": "7", "answer": "7 or 9", "set": ["7", "9"]}), name_outcome({"value": 1.0})
    ('several', 'answered')
    """
    if "error" in answer:
        return "not finite"
    text = answer.get("answer")
    if text in (FOREIGN, WITHHELD):
        return "foreign" if text == FOREIGN else "withheld"
    return "answered" if text in (None, answer.get("label"), *answer.get("set", ())) else "several"
