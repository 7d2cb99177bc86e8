"""Features of a trained LeNet-5: where the dense layers alone are trained, its convolutions answer once for all epochs."""

import torch
from torch import Tensor, nn

from ...core.modes import evaluation_mode
from ...data.dataset import Data, Part
from ...data.preparation import Preparation

CHUNK = 1000


def cut_before(net: nn.Module, layer: str) -> nn.Sequential:
    """Return the children of a chain of layers that stand before one of them."""
    names = [name for name, _ in net.named_children()]
    if layer not in names:
        raise ValueError(f"the network must have a layer {layer!r} to cut before, it has {', '.join(names)}")
    return nn.Sequential(*list(net.children())[: names.index(layer)])


@torch.no_grad()
def compute_features(data: Data, net: nn.Module, layer: str = "dense1") -> Data:
    """Return data whose rows are what enters a layer of a trained network, `[N, features]`, in place of images."""
    body = cut_before(net, layer)

    def convert(part: Part) -> Part:
        rows: list[Tensor] = [body(data.preparation(images)) for images in part.x.split(CHUNK)]
        return Part(torch.cat(rows), part.y)

    with evaluation_mode(body):
        train, test = convert(data.train), convert(data.test)
    return Data(data.name, train, test, Preparation(), data.classes, data.source, data.facts)
