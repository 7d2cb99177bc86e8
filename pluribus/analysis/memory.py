"""Memory of tensors, counted at every operation, so that it does not depend on the machine."""

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def count_bytes(module: nn.Module) -> int:
    """Return the bytes of a module's parameters and buffers.

    >>> count_bytes(nn.Linear(3, 2))
    32
    """
    return sum(tensor.numel() * tensor.element_size() for tensor in [*module.parameters(), *module.buffers()])


def measure_peak_memory(run: Callable[[], Any]) -> int:
    """Return the most bytes that tensors created during `run` held at the same time.

    >>> import torch
    >>> measure_peak_memory(lambda: torch.ones(100) + 1)  # two tensors of 100 floats
    800
    """
    with _StorageCounter() as counter:
        run()
    return counter.peak


class _StorageCounter(TorchDispatchMode):
    """Counts storages when operations create them and when they are freed."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; with True torch would import its compiler for the first operation, for 2 s."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.current = self.peak = 0
        self.seen: dict[int, weakref.finalize] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = {_storage_key(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and (key := _storage_key(leaf)) not in inputs and key not in self.seen:
                storage = leaf.untyped_storage()
                self.current += storage.nbytes()
                self.seen[key] = weakref.finalize(storage, self._remove, key, storage.nbytes())
        self.peak = max(self.peak, self.current)
        return result

    def _remove(self, key: int, count: int) -> None:
        self.current -= count
        self.seen.pop(key, None)


def _storage_key(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
