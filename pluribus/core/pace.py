"""How an ensemble goes about a batch: members together or one after the other, how many rows at once, and how they lie.

Together, members share calls, and all work before they part. One after the other, each has tensors that stay in the caches,
and convolutions without copies between them; nothing is gained by sharing where members part at the first weights. Both give
the same answers. The numbers here were found by measurement: docs/performance.md.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from . import nested
from .members import MemberLayer

if TYPE_CHECKING:
    from .ensemble import Ensemble

APART = 2**20
"""Numbers in a member's largest tensor from which on members run one after the other."""
AT_ONCE = 2**21
"""Numbers in the largest tensor that an answer may take: about what caches hold, and what the allocator keeps at hand."""


def apart(ensemble: "Ensemble", x: Any) -> bool:
    """Whether members run one after the other on rows like these: because they must, or because it is faster.

    In training they must not if they meet in a BatchNorm: it is to see the rows of all.
    """
    assert ensemble.branch is not None
    state = ensemble.state
    state.chosen = ensemble.branch.kind != "loop"
    if not state.chosen:
        return True
    if not nothing_twice(ensemble) or ensemble.extent.branched * nested.count_rows(x) < APART:
        return False
    return not (ensemble.training and meet(ensemble))


def nothing_twice(ensemble: "Ensemble") -> bool:
    """Whether members that run one after the other repeat no work. Draws have their first layer in common."""
    return ensemble.members > 1 and not ensemble.sampled and not ensemble.extent.trunk


def meet(ensemble: "Ensemble") -> bool:
    """Whether a BatchNorm that learns sees the rows of all members."""
    own = {part for layer in ensemble.net.modules() if isinstance(layer, MemberLayer) for part in layer.modules()}
    norms = (module for module in ensemble.net.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm))
    return any(norm.training and norm not in own for norm in norms)


def at_once(ensemble: "Ensemble") -> int:
    """Rows to answer at once, so that memory does not grow with M: of an ensemble in evaluation mode."""
    shared, branched, _ = ensemble.extent
    if nothing_twice(ensemble):  # few, large steps cost least where a member is alone
        return max(1, min(4096, 2 * AT_ONCE // max(branched, shared)))
    return max(1, min(4096 // ensemble.members, AT_ONCE // max(ensemble.members * branched, shared)))


def convolves(net: nn.Module, x: Any) -> bool:
    """Whether convolutions see these images with more than one channel: they are faster with the channels last in memory."""
    if not isinstance(x, Tensor) or x.dim() != 4 or x.shape[1] == 1 or not x.is_floating_point():
        return False
    layers = (getattr(vars(module).get("affine"), "template", module) for module in net.modules())
    return any(isinstance(layer, nn.Conv2d) for layer in layers)


def laid_out(ensemble: "Ensemble", x: Any) -> Any:
    """The batch as the ensemble takes it fastest. The numbers are the same; the order of additions is not."""
    if not ensemble.channels_last or not isinstance(x, Tensor):
        return x
    return x.contiguous(memory_format=torch.channels_last)
