"""What an ensemble costs, as ratios to the network that it was made of: counted where that is exact, measured where it is not.

Latency is the median over interleaved repeats of (this / base), so that whatever else slows the machine slows both. Memory is
the peak of live tensors, weights included, during a forward pass: it is counted at every operation, and does not depend on the
machine. FLOPs are those of torch's counter.
"""

import copy
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..core.describe import Description, count_call_flops, count_flops, count_parameters
from ..core.ensemble import Ensemble
from ..core.modes import evaluation_mode
from ..metrics.intervals import Interval, bootstrap

SLICE = 5e-3
"""Seconds that one measurement takes at least."""


@dataclass(frozen=True)
class Cost:
    """Ratios to the base network; None where something could not be counted."""

    parameters: float
    """Trained."""
    deployed_parameters: float
    flops: float | None
    """Of an answer, as an ensemble."""
    deployed_flops: float | None
    training_flops: float | None
    """Of a step, forward and backward."""
    memory: float
    latency: Interval
    form: str
    """What is deployed: "folded" where folding makes it cheaper, else "ensemble"."""

    @property
    def passes(self) -> int | None:
        """Forward passes of the base network's size that one answer takes."""
        return None if self.deployed_flops is None else max(1, round(self.deployed_flops))


def cost(ensemble: Ensemble, base: nn.Module, x: Tensor, y: Tensor, *, repeats: int = 15) -> Cost:
    """What the ensemble costs on a batch like this one: x `[B, …]`, y `[B]`."""
    told = ensemble.describe(x[:1])  # it may not have seen an input yet
    kind, flops, parameters = form(told)
    deployed = ensemble.fold() if kind == "folded" else ensemble
    with evaluation_mode(ensemble), evaluation_mode(base), torch.no_grad(), torch.random.fork_rng(devices=[]):
        latency = compared(lambda: deployed(x), lambda: base(x), repeats)
        memory = (peak(lambda: deployed(x)) + size(deployed)) / (peak(lambda: base(x)) + size(base))
    base_parameters, base_flops = count_parameters(base), count_flops(base, x[:1])  # it may be wider than the one converted
    return Cost(
        parameters=told.parameters / base_parameters,
        deployed_parameters=parameters / base_parameters,
        flops=ratio(told.flops, base_flops),
        deployed_flops=ratio(flops, base_flops),
        training_flops=training_flops(ensemble, base, x[:8], y[:8]),
        memory=memory,
        latency=latency,
        form=kind,
    )


def form(told: Description) -> tuple[str, int | None, int]:
    """What to deploy, its FLOPs and parameters: folded where that takes fewer FLOPs, or, of as many, no more weights."""
    folded, own = (told.deployed_flops, told.deployed_parameters), (told.flops, told.parameters)
    if folded[0] is not None and own[0] is not None and folded <= own and told.foldable:
        return "folded", *folded
    return "ensemble", *own


def compared(this: Callable[[], Any], base: Callable[[], Any], repeats: int) -> Interval:
    """How much longer this takes than the base, in turns: the median of the ratios, and its 95 % interval."""
    for _ in range(3):
        this(), base()
    # Short ones are repeated, so that neither the clock's grain nor what the other left in the caches matters.
    own_times, times = (max(1, round(SLICE / max(timed(run), 1e-7))) for run in (this, base))
    ratios = []
    for _ in range(repeats):
        before, own, after = timed(base, times), timed(this, own_times), timed(base, times)
        ratios.append(2 * own / (before + after))
    return bootstrap(torch.tensor(ratios, dtype=torch.double), torch.median, draws=500)


def timed(run: Callable[[], Any], times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        run()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / times


def training_flops(ensemble: Ensemble, base: nn.Module, x: Tensor, y: Tensor) -> float | None:
    """Of a step on these rows, forward and backward, over the base network's; on copies, so that nothing is changed."""
    twin, plain = copy.deepcopy(ensemble).train(), copy.deepcopy(base).train()

    def step() -> None:
        twin.loss(x, y, examples=max(len(y), 1)).backward()

    def base_step() -> None:
        twin.criterion(plain(x), y).backward()

    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        return ratio(count_call_flops(step), count_call_flops(base_step))


def ratio(value: int | None, base: int | None) -> float | None:
    return value / base if value is not None and base else None


def size(module: nn.Module) -> int:
    """Bytes of its parameters and buffers."""
    return sum(t.numel() * t.element_size() for t in [*module.parameters(), *module.buffers()])


def peak(run: Callable[[], Any]) -> int:
    """The most bytes that tensors made during `run` held at the same time."""
    with _Watch() as watch:
        run()
    return watch.most


class _Watch(TorchDispatchMode):
    """Counts storages as operations make them and as they go."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self.seen: dict[int, weakref.finalize] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {storage_key(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and (key := storage_key(leaf)) not in given and key not in self.seen:
                storage = leaf.untyped_storage()
                self.now += storage.nbytes()
                self.seen[key] = weakref.finalize(storage, self.gone, key, storage.nbytes())
        self.most = max(self.most, self.now)
        return result

    def gone(self, key: int, count: int) -> None:
        self.now -= count
        self.seen.pop(key, None)


def storage_key(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
