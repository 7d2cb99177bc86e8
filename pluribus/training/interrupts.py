"""Ctrl-C and SIGTERM finish the step, save and stop; a second signal stops at once."""

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
    """The run was asked to stop, and was saved."""


class StopRequest:
    """Remembers whether this process received SIGINT or SIGTERM.

    On either signal Lightning ends a run without a checkpoint; hence handlers of our own.
    """

    def __init__(self) -> None:
        self.received = False

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = True

    @contextlib.contextmanager
    def signal_handlers(self) -> Iterator[None]:
        """Handle the signals inside the block, and give them back to their former handlers after it."""
        former = self.install_handlers()
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def install_handlers(self) -> dict[int, Any]:
        """Handle the signals from now on, and return the former handlers. Python allows this in the main thread alone."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self.handle_signal) for number in (signal.SIGINT, signal.SIGTERM)}

    def is_made(self, trainer: L.Trainer, now: bool = False) -> bool:
        """Whether any process received a signal. Several processes exchange this every five steps, or `now`."""
        if trainer.world_size == 1:
            return self.received
        if not now and trainer.global_step % 5:
            return False
        return trainer.strategy.reduce_boolean_decision(self.received, all=False)

    def stop(self, folder: Path) -> None:
        raise Interrupted(f"stopped; the run is saved in {folder.parent}")
