"""Training and evaluation mode, module by module: a frozen BatchNorm in a training network stays frozen."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; then every part is as it was."""
    with restore_modes(module):
        module.eval()
        yield


@contextmanager
def training_mode(module: nn.Module) -> Iterator[None]:
    """Training mode for a while, if it is not in that already; then every part is as it was."""
    with restore_modes(module):
        if not module.training:
            module.train()
        yield


@contextmanager
def restore_modes(module: nn.Module) -> Iterator[None]:
    modes = {part: part.training for part in module.modules()}
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode
