"""What is attacked in figure 7."""

import pytest
import torch

import pluribus
from pluribus import Single, Variance
from pluribus.papers.variance.figure_7 import join_networks, split_blocks
from pluribus.papers.variance.networks import build_network, list_variational_layers


def build_fast(seed):
    return build_network("fast", seed, width=0.1)


@pytest.mark.parametrize("method", ["deep ensemble", "variance ensemble"])
def test_an_ensemble_has_the_networks_of_its_parts_and_what_they_keep_beside_their_weights(method):
    spec = Single() if method == "deep ensemble" else Variance(include=list_variational_layers(build_fast(0))[-1])
    parts = [pluribus.ensemble(build_fast(seed), spec).eval() for seed in (1, 2)]
    joined = join_networks(parts, method, build_fast(0))
    x = torch.rand(3, 3, 32, 32)
    assert joined.predict(x).probs.isfinite().all()
    members = [part for part in joined.net.children() if isinstance(part, pluribus.Ensemble)]
    for part, member in zip(parts, members, strict=True):
        torch.manual_seed(0)
        expected = part.predict(x[:1]).members[0]
        torch.manual_seed(0)
        torch.testing.assert_close(member.predict(x[:1]).members[0], expected)


@pytest.mark.parametrize(("rows", "sizes"), [(1000, [100] * 10), (10, [1] * 10), (25, [3] * 8 + [1])])
def test_images_are_split_into_ten_blocks_at_most(rows, sizes):
    assert [len(block) for block in split_blocks(torch.zeros(rows))] == sizes
