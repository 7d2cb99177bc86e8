"""Ensembles and inputs for the tests of attacks."""

import torch
from torch import nn

import pluribus
from pluribus import Single

NORMS = ("linf", "l2")


def linear(weight, bias=None):
    """Logits Wx + b in double precision, as an ensemble of one."""
    net = nn.Linear(len(weight[0]), len(weight)).double()
    net.weight.data = torch.tensor(weight, dtype=torch.double)
    net.bias.data = torch.tensor(bias or [0.0] * len(weight), dtype=torch.double)
    return pluribus.ensemble(net, Single())


def pixels(*shape, dtype=torch.float):
    """Some of them at the edges of the box."""
    return (1.4 * torch.rand(*shape, dtype=dtype) - 0.2).clamp(0, 1)
