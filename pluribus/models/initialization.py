"""How the convolutional networks start."""

from torch import nn


def initialize_he(net: nn.Module) -> nn.Module:
    """He-normal convolutions by fan-in; everything else as PyTorch has it."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net
