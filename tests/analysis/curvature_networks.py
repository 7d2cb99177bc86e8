"""Small networks with one layer to look at: the name of that layer, and how to make the network."""

import torch
import torch.nn.functional as F
from torch import nn

C = 3
"""Classes."""


class Functional(nn.Module):
    """Its activation is no module, and the classifier is registered first."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(5, C), nn.Linear(4, 5)

    def forward(self, x):
        return self.head(F.softplus(self.body(x)))


class Skip(Functional):
    def forward(self, x):
        r = self.body(x)
        return self.head(torch.tanh(r) + r.square()) + x[:, :C]


class Mixing(Functional):
    """Rows see one another."""

    def forward(self, x):
        r = self.body(x)
        return self.head(F.softplus(r - r.mean(0)))


class Twice(Functional):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, C)

    def forward(self, x):
        return self.head(F.softplus(self.body(F.softplus(self.body(x)))))


class Positions(Functional):
    def forward(self, x):
        return self.head(F.softplus(self.body(torch.stack([x, x.sin()], 1))).mean(1))


def normalised(*layers) -> nn.Module:
    """BatchNorm as after training: no number of it is 0 or 1."""
    net = nn.Sequential(*layers)
    for norm in (layer for layer in net if isinstance(layer, nn.BatchNorm1d)):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.3, 3)
    return net


NETS = {
    "softplus": ("0", lambda: nn.Sequential(nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, C))),
    "batchnorm": ("0", lambda: normalised(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Softplus(), nn.Dropout(), nn.Linear(5, C))),
    "batchnorm-after": ("0", lambda: normalised(nn.Linear(4, 5), nn.Softplus(), nn.BatchNorm1d(5), nn.Linear(5, C))),
    "functional": ("body", Functional),
    "skip": ("body", Skip),
    "deep": ("0", lambda: nn.Sequential(nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, C))),
    "narrow": ("0", lambda: nn.Sequential(nn.Linear(4, 2), nn.Softplus(), nn.Linear(2, C))),
    "middle": ("2", lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, C))),
    "classifier": ("2", lambda: nn.Sequential(nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, C))),
    "mixing": ("body", Mixing),
    "twice": ("body", Twice),
    "positions": ("body", Positions),
}
CLOSED = ["softplus", "batchnorm", "batchnorm-after", "functional", "skip", "middle", "classifier"]
"""The networks in which each logit is a sum of functions of single units."""
