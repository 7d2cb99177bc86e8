"""Counting the FLOPs of a call in one thread, while other threads run networks, too."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode


class FlopCounter(FlopCounterMode):
    """torch's counter of FLOPs without its table by module.

    For that table torch puts hooks on every module of the process. They would also run in other threads, where they fail now
    and then, because two threads change one set.

    >>> import torch
    >>> with FlopCounter() as counter:
    ...     _ = torch.nn.Linear(3, 2)(torch.randn(5, 3))
    >>> counter.get_total_flops()
    60
    """

    def __init__(self) -> None:
        super().__init__(display=False)
        self.mod_tracker: Any = _NoModules()


def count_call_flops(run: Callable[[], Any]) -> int | None:
    """The FLOPs of a call by torch's own counter; None where the call, or the counting of it, is not possible."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the counter does not know the fused transformer kernels
    try:
        with FlopCounter() as counter:
            run()
        return counter.get_total_flops()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


class _NoModules:
    """Stands for torch's record of the modules that run: everything is counted as "Global"."""

    parents = frozenset({"Global"})

    def __enter__(self) -> "_NoModules":
        return self

    def __exit__(self, *_: object) -> None:
        return
