"""Transposed convolutions, which may be called with the size that is to come out."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    DeepEnsemble,
    Inner,
    LowRank,
    Maxout,
    MCDropout,
    Mixture,
    Multihead,
    TreeNet,
    Variance,
    VariationalDropout,
)


class UNet(nn.Module):
    """Tells its transposed convolution what size is to come out, by name or by place."""

    def __init__(self, named: bool) -> None:
        super().__init__()
        self.named = named
        self.stem, self.down = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 3, 2, 1), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        skip = torch.relu(self.stem(x))
        low = torch.relu(self.down(skip))
        up = self.up(low, output_size=skip.shape[-2:]) if self.named else self.up(low, skip.shape[-2:])
        return self.out(torch.cat([skip, torch.relu(up)], 1))


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    "spec",
    [
        *(Inner(copies=2), Maxout(copies=2), MIMO(2), Multihead(2), TreeNet(2, split="up"), DeepEnsemble(2)),
        *(BatchEnsemble(2), LowRank(2), Mixture(2, parameters=2.5, blob=True), MCDropout(samples=2)),
        *(Variance(samples=2, include="up"), VariationalDropout(samples=2)),
    ],
    ids=str,
)
def test_a_transposed_convolution_may_be_told_its_output_size(spec, named):
    ensemble = pluribus.ensemble(UNet(named).double(), spec).eval()
    for size in (10, 9, 10):  # the same layer brings 5 to 10, and 5 to 9
        x = torch.randn(3, 1, size, size, dtype=torch.double)
        answers = ensemble(x)
        assert answers.shape[1:] == (3, 3, size, size)
        plain = ensemble if ensemble.count_plain_members() else ensemble.freeze() if ensemble.sampled else None
        if plain is not None and not isinstance(spec, (Maxout, MCDropout)):
            torch.testing.assert_close(plain.member(0)(x), plain(x)[0], rtol=0, atol=1e-10)
    ensemble.train().loss(x, torch.zeros(3, size, size, dtype=torch.long), examples=10).backward()
