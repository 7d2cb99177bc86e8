"""The work that is compared, of a base network and of what is made of it: a training step, and an answer.

Time is for `race`. Memory and FLOPs are counted at every operation, once; they do not depend on the machine.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..analysis.cost import peak, size
from ..core.describe import count_call_flops
from ..core.ensemble import Ensemble

Work = Literal["training step", "forward", "state"]
"""State is not timed: it is what stays in memory between steps."""
TITLES: dict[Work, str] = {"training step": "training step", "forward": "forward", "state": "memory of weights and momentum"}
EXAMPLES = 50_000
"""What a penalty is weighed against: the size of an invented training set."""


class Step:
    """A training step: zero_grad, loss, backward, and SGD with momentum and weight decay."""

    def __init__(self, net: nn.Module, x: Tensor, y: Tensor) -> None:
        self.net, self.x, self.y = net.train(), x, y
        groups: Any = net.param_groups() if isinstance(net, Ensemble) else net.parameters()
        # The rate is low, because thousands of steps on one batch must neither diverge nor end in denormal numbers.
        self.optimizer = torch.optim.SGD(groups, lr=1e-4, momentum=0.9, weight_decay=5e-4)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def loss(self) -> Tensor:
        if isinstance(self.net, Ensemble):
            return self.net.loss(self.x, self.y, examples=EXAMPLES)
        return F.cross_entropy(self.net(self.x), self.y)

    def state(self) -> int:
        """Bytes that stay between steps, gradients aside: weights, buffers, momentum."""
        kept = [value for state in self.optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
        return size(self.net) + sum(value.numel() * value.element_size() for value in kept)


def answer(net: nn.Module, x: Tensor) -> Callable[[], Any]:
    """A forward pass, in evaluation mode: of an ensemble the public way to ask it, which answers in chunks."""
    net.eval()
    return (lambda: net.predict(x)) if isinstance(net, Ensemble) else (lambda: net(x))


def timeable(work: Work, net: nn.Module, x: Tensor, y: Tensor) -> Callable[[], Any]:
    if work == "training step":
        return Step(net, x, y)
    run = answer(net, x)

    def inferring() -> None:
        with torch.inference_mode():
            run()

    return inferring


def memory(work: Work, net: nn.Module, x: Tensor, y: Tensor) -> int:
    """Bytes at the peak: what stays, and the most that lives at once besides (a step's gradients are among it)."""
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # what a fused transformer kernel makes inside cannot be seen
    try:
        if work == "forward":
            run = answer(net, x)
            with torch.no_grad():
                return size(net) + peak(run)
        step = Step(net, x, y)
        step()  # momentum is made in the first one
        step.optimizer.zero_grad()
        return step.state() if work == "state" else step.state() + peak(step)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)


def flops(work: Work, net: nn.Module, x: Tensor, y: Tensor) -> int | None:
    """By torch's counter; None where it cannot count."""
    if work == "training step":
        return count_call_flops(Step(net, x, y))
    run = answer(net, x)
    with torch.no_grad():
        return count_call_flops(run)
