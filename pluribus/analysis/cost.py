"""The cost of an ensemble, as ratios to the network that it was made of: counted where that is exact, measured elsewhere.

Latency is the median of (ensemble / base) over interleaved repeats (`timing.py`). Memory is the peak of live tensors during a
forward pass, weights included (`memory.py`). FLOPs are those of torch's counter. Memory and FLOPs do not depend on the machine.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..core.describe import Description, count_flops, count_parameters
from ..core.ensemble import Ensemble
from ..core.flop_counting import count_call_flops
from ..core.losses import compute_loss
from ..core.modes import copy_for_evaluation
from ..metrics.intervals import Interval, bootstrap
from .memory import count_bytes, measure_peak_memory
from .timing import compute_ratios, time_interleaved


@dataclass(frozen=True)
class Cost:
    """Ratios to the base network; None where something could not be counted."""

    parameters: float
    """Trained parameters."""
    deployed_parameters: float
    flops: float | None
    """FLOPs of a prediction by the ensemble as it is."""
    deployed_flops: float | None
    training_flops: float | None
    """FLOPs of a training step, forward and backward."""
    memory: float
    latency: Interval
    form: str
    """The form that is deployed: "folded" where folding makes predictions cheaper, else "ensemble"."""

    @property
    def passes(self) -> int | None:
        """How many forward passes of the base network cost as much as one prediction."""
        return None if self.deployed_flops is None else max(1, round(self.deployed_flops))


def compare_cost(ensemble: Ensemble, base: nn.Module, x: Tensor, y: Tensor, *, repeats: int = 15) -> Cost:
    """Measure an ensemble and its base network on the same batch, and return the ratios.

    Args:
        ensemble: The ensemble. Its weights, gradients and mode stay as they are.
        base: The network to divide by; it may differ from the one that was converted.
        x: Inputs `[B, …]`.
        y: Targets `[B]`, for the FLOPs of a training step.
        repeats: How often both are timed.

    >>> import pluribus
    >>> net = nn.Linear(6, 3)
    >>> x, y = torch.randn(16, 6), torch.randint(3, (16,))
    >>> found = compare_cost(pluribus.ensemble(net, pluribus.DeepEnsemble(members=3)), net, x, y, repeats=2)
    >>> found.parameters, found.flops, found.training_flops, found.passes
    (3.0, 3.0, 3.0, 3)
    """
    description = ensemble.describe(x[:1])  # the ensemble may not have seen an input yet
    form, flops, parameters = choose_deployment(description)
    deployed = ensemble.fold() if form == "folded" else copy_for_evaluation(ensemble)
    base = copy_for_evaluation(base)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        latency = compare_latency(lambda: deployed(x), lambda: base(x), repeats)
        own_memory = measure_peak_memory(lambda: deployed(x)) + count_bytes(deployed)
        base_memory = measure_peak_memory(lambda: base(x)) + count_bytes(base)
    base_parameters, base_flops = count_parameters(base), count_flops(base, x[:1])
    return Cost(
        parameters=description.parameters / base_parameters,
        deployed_parameters=parameters / base_parameters,
        flops=divide_counts(description.flops, base_flops),
        deployed_flops=divide_counts(flops, base_flops),
        training_flops=compare_training_flops(ensemble, base, x[:8], y[:8]),
        memory=own_memory / base_memory,
        latency=latency,
        form=form,
    )


def choose_deployment(description: Description) -> tuple[str, int | None, int]:
    """Return the form to deploy ("folded" or "ensemble"), its FLOPs and its parameters.

    An ensemble is folded where that takes fewer FLOPs, or equally many FLOPs and no more parameters.
    """
    folded = description.deployed_flops, description.deployed_parameters
    own = description.flops, description.parameters
    if folded[0] is not None and own[0] is not None and folded <= own and description.foldable:
        return "folded", *folded
    return "ensemble", *own


def compare_latency(run: Callable[[], Any], base: Callable[[], Any], repeats: int) -> Interval:
    """Time two functions in turns, and return the median of the ratios `run / base` with its 95 % interval.

    Each repeat times the base twice and divides by the mean, because its noise is in every ratio.
    """
    times = list(time_interleaved({"run": run, "base": base, "base again": base}, repeats))
    base_times = [(each["base"] + each["base again"]) / 2 for each in times]
    ratios = compute_ratios([each["run"] for each in times], base_times)
    return bootstrap(torch.tensor(ratios, dtype=torch.double), torch.median, draws=500)


def compare_training_flops(ensemble: Ensemble, base: nn.Module, x: Tensor, y: Tensor) -> float | None:
    """Divide the FLOPs of a training step, forward and backward, by those of the base network.

    Both are run on copies, so that nothing is changed. Args: x `[B, …]`, y `[B]`. Returns None where they cannot be counted.
    """
    ensemble_copy, base_copy = copy.deepcopy(ensemble).train(), copy.deepcopy(base).train()

    def run_step() -> None:
        ensemble_copy.loss(x, y, examples=max(len(y), 1)).backward()

    def run_base_step() -> None:
        compute_loss(ensemble.task, base_copy(x), y, class_axis=ensemble.class_axis).backward()

    with torch.enable_grad(), torch.random.fork_rng(devices=[]):
        return divide_counts(count_call_flops(run_step), count_call_flops(run_base_step))


def divide_counts(value: int | None, base: int | None) -> float | None:
    """Return value / base, or None where one of them is unknown or the base is zero."""
    return value / base if value is not None and base else None
