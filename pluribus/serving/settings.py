"""What a server may be told: how rows are batched, and how much it takes at once."""

from dataclasses import dataclass

HELD_BODIES = 64
"""Bodies of the largest size that a server holds at once; more are refused until some are answered."""
BODY_SECONDS = 30.0
"""How long the body of a request may take to arrive."""
SHUTDOWN_SECONDS = 30
"""How long requests may take to be answered once the server was told to stop."""


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server.

    `max_batch` rows at most are one run of the model, which begins `max_wait_ms` milliseconds after the first of them has
    arrived, or earlier if they are that many. A request has at most `max_rows` rows and `max_bytes` bytes, and at most
    `max_waiting` rows wait. `threads` of the processor compute; None means as many as the machine has.

    >>> ServerSettings(max_batch=0)
    Traceback (most recent call last):
    ValueError: max_batch must be at least 1, got 0
    """

    max_batch: int = 64
    max_wait_ms: float = 2.0
    max_rows: int = 256
    max_bytes: int = 4 * 2**20
    max_waiting: int = 1024
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_rows", "max_bytes", "max_waiting", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not 0 <= self.max_wait_ms <= 10_000:
            raise ValueError(f"max_wait_ms must be from 0 to 10000 milliseconds, got {self.max_wait_ms}")
        if self.max_rows > self.max_waiting:
            raise ValueError(
                f"max_rows must be at most max_waiting, got {self.max_rows} and {self.max_waiting}: such requests would never "
                "be taken"
            )
