"""The workloads that are compared between a base network and an ensemble: a training step, and a prediction.

Time is measured by `analysis.timing`. Memory and FLOPs are counted once at every operation: they do not depend on the machine.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..analysis.memory import count_bytes, measure_peak_memory
from ..core.ensemble import Ensemble
from ..core.flop_counting import count_call_flops

Workload = Literal["training step", "forward", "state"]
"""The state is not timed: it is the memory that stays allocated between training steps."""
TITLES: dict[Workload, str] = {
    "training step": "training step",
    "forward": "forward",
    "state": "memory of weights and momentum",
}
EXAMPLES = 50_000
"""The size of the imaginary training set by which penalties are weighted."""


class TrainingStep:
    """A training step: zero_grad, loss, backward, and a fused step of SGD with momentum and weight decay, as in `fit`."""

    def __init__(self, net: nn.Module, x: Tensor, y: Tensor) -> None:
        self.net, self.x, self.y = net.train(), x, y
        groups: Any = net.param_groups() if isinstance(net, Ensemble) else net.parameters()
        # The rate is low, because thousands of steps on one batch must neither diverge nor end in denormal numbers.
        self.optimizer = torch.optim.SGD(groups, lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def loss(self) -> Tensor:
        if isinstance(self.net, Ensemble):
            return self.net.loss(self.x, self.y, examples=EXAMPLES)
        return F.cross_entropy(self.net(self.x), self.y)

    def count_state_bytes(self) -> int:
        """Return the bytes that stay allocated between steps, without gradients: weights, buffers, momentum."""
        states = [value for state in self.optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
        return count_bytes(self.net) + sum(value.numel() * value.element_size() for value in states)


def prepare_forward(net: nn.Module, x: Tensor) -> Callable[[], Any]:
    """Put the network into evaluation mode, and return its forward pass; of an ensemble, `predict`, which runs in chunks."""
    net.eval()
    return (lambda: net.predict(x)) if isinstance(net, Ensemble) else (lambda: net(x))


def prepare_workload(workload: Workload, net: nn.Module, x: Tensor, y: Tensor) -> Callable[[], Any]:
    """Return a function that runs the workload once, to be timed."""
    if workload == "training step":
        return TrainingStep(net, x, y)
    return use_inference_mode(prepare_forward(net, x))


def use_inference_mode(run: Callable[[], Any]) -> Callable[[], None]:
    """Return a function that calls `run` in inference mode."""

    def run_in_inference_mode() -> None:
        with torch.inference_mode():
            run()

    return run_in_inference_mode


def measure_workload_memory(workload: Workload, net: nn.Module, x: Tensor, y: Tensor) -> int:
    """Return the peak in bytes: what stays allocated, and the most that is allocated besides, gradients included."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # tensors inside a fused transformer kernel cannot be counted
    try:
        if workload == "forward":
            run = prepare_forward(net, x)
            with torch.no_grad():
                return count_bytes(net) + measure_peak_memory(run)
        step = TrainingStep(net, x, y)
        step()  # the first step allocates the momentum
        step.optimizer.zero_grad()
        return step.count_state_bytes() + (0 if workload == "state" else measure_peak_memory(step))
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def count_workload_flops(workload: Workload, net: nn.Module, x: Tensor, y: Tensor) -> int | None:
    """Count FLOPs by torch's counter; None where it cannot count them."""
    if workload == "training step":
        return count_call_flops(TrainingStep(net, x, y))
    run = prepare_forward(net, x)
    with torch.no_grad():
        return count_call_flops(run)
