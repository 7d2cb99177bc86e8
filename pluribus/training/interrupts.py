"""Ctrl-C and SIGTERM: finish the step, save, and stop; a second time, stop at once."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import lightning as L

from ..core.errors import PluribusError


class Interrupted(PluribusError):
    """Somebody asked the run to stop, and it was saved."""


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.heard = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        if self.heard:
            raise KeyboardInterrupt
        self.heard = True

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        before = self.listen()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def listen(self) -> dict[int, Any]:
        """Take the signals, and return who had them. Only the main thread can listen; elsewhere nothing changes."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self.hear) for number in (signal.SIGINT, signal.SIGTERM)}

    def asked(self, trainer: L.Trainer, now: bool = False) -> bool:
        """All processes must give the same answer, so that they ask one another, every few steps."""
        if trainer.world_size == 1:
            return self.heard
        if not now and trainer.global_step % 5:
            return False
        return trainer.strategy.reduce_boolean_decision(self.heard, all=False)

    def stop(self, folder: Path) -> None:
        raise Interrupted(f"stopped; the run is saved in {folder.parent}")
