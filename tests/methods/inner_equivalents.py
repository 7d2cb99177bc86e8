"""The settings at which a base network is trained exactly as an inner ensemble of it is."""

import torch
from torch import nn


def optimize_by_sgd(groups, m, like_copies):
    """What m copies do at lr and wd, one layer does at lr/m and m·wd: its gradient is m times theirs."""
    own = {"lr": 0.05 / m, "weight_decay": 5e-3 * m} if like_copies else {}
    groups[0] |= own
    return torch.optim.SGD(groups, lr=0.05, weight_decay=5e-3, momentum=0.9, nesterov=True)


def optimize_by(kind, **options):
    """Of Adam: the moments of m copies' gradients are g/m and √v/m, so their step is lr · g / (√v + m·ε)."""

    def make(groups, m, like_copies):
        groups[0] |= {"eps": 1e-3 * m} if like_copies else {}
        return kind(groups, lr=2e-3, eps=1e-3, **options)

    return make


EQUIVALENTS = {
    "SGD": optimize_by_sgd,
    "Adam": optimize_by(torch.optim.Adam),
    "AdamW": optimize_by(torch.optim.AdamW, weight_decay=0.1),
}


def train_residual_network(answer, optimizer, steps=200):
    """A cosine schedule over 200 batches of 8 images."""
    generator = torch.Generator().manual_seed(1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    x = torch.randn(64, 3, 6, 6, dtype=torch.double, generator=generator)
    y = torch.randint(0, 3, (64,), generator=generator)
    for step in range(steps):
        rows = torch.arange(8 * step, 8 * step + 8) % 64
        optimizer.zero_grad()
        nn.functional.cross_entropy(answer(x[rows]), y[rows]).backward()
        optimizer.step()
        schedule.step()
    return x
