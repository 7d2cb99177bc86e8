"""The networks on which costs are measured, and their batches. The MLP is so small that its time is mostly overhead."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ..models import lenet5, mlp, resnet, vit, wide_resnet

CLASSES = 10


@dataclass(frozen=True)
class Network:
    title: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def draw_batch(self, rows: int) -> tuple[Tensor, Tensor]:
        """Draw x `[B, …]` and y `[B]`. Images have their channels last, because convolutions on a CPU are faster with them."""
        x, y = torch.randn(rows, *self.shape), torch.randint(CLASSES, (rows,))
        return (x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x), y


NETWORKS = {
    "mlp": Network("MLP 64-64", partial(mlp, 64, CLASSES, (64, 64)), (64,)),
    "lenet5": Network("LeNet-5", lenet5, (1, 28, 28)),
    "resnet20": Network("ResNet-20", partial(resnet, 20), (3, 32, 32)),
    "wrn-16-2": Network("WRN-16-2", partial(wide_resnet, 16, 2), (3, 32, 32)),
    "vit": Network("ViT", vit, (3, 32, 32)),
}
