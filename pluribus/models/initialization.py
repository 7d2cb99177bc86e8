"""The initial weights of the convolutional networks."""

from torch import nn


def initialize_he(net: nn.Module) -> nn.Module:
    """Draw the weights of all convolutions He-normal by fan-in, in place; other layers stay. Returns: the same network."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net
