import torch
from torch import nn

import pluribus
from pluribus import MIMO, Multihead
from tests.networks import NestedMLP, vectors


def test_heads_share_all_features():
    ensemble = pluribus.ensemble(NestedMLP(), Multihead(members=4)).eval()
    ensemble(vectors(2))
    rows = []
    ensemble.net.body[2].register_forward_hook(lambda module, args, output: rows.append(len(output)))
    ensemble(vectors(5))
    assert rows == [5]
    assert ensemble.describe().flops < 1.2 * ensemble.describe().base_flops


def test_heads_part_on_the_same_data():
    net = NestedMLP()
    with torch.no_grad():
        net.head.weight.zero_(), net.head.bias.zero_()  # as some classifiers start
    ensemble = pluribus.ensemble(net, Multihead(members=3))
    ensemble.loss(vectors(8), torch.arange(8) % 3).backward()
    gradient = ensemble.net.head.weights.grad
    assert not torch.allclose(gradient[1], gradient[2])


def test_it_is_mimo_with_all_inputs_repeated():
    """ρ = 1: with the same heads and a first layer ΣW_m, MIMO on equal inputs is multihead."""
    mimo = pluribus.ensemble(NestedMLP().double(), MIMO(3, input_repetition=1.0, init="fresh"))
    multihead = pluribus.ensemble(mimo.member(0), Multihead(3))
    with torch.no_grad():
        multihead.net.head.weights.copy_(mimo.net.head.weights)
        multihead.net.head.biases.copy_(mimo.net.head.biases)
    x, y = vectors(6, torch.double), torch.arange(6) % 3
    torch.testing.assert_close(mimo.loss(x, y), multihead.loss(x, y))


def test_something_that_goes_around_the_heads_does_not_break_folding():
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            h = self.body(x)
            return h + self.head(h)

    ensemble = pluribus.ensemble(Around().double(), Multihead(members=3)).eval()
    x = torch.randn(6, 4, dtype=torch.double)
    before = ensemble.fold()
    torch.testing.assert_close(before(x), ensemble(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(ensemble.fold()(x), ensemble(x), rtol=0, atol=1e-12)


def test_a_named_layer_need_not_run_last():
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.after = nn.Linear(4, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.after(self.head(x))

    assert pluribus.ensemble(Normed(), Multihead(last="head"))(torch.randn(2, 4)).shape == (3, 2, 3)


def test_a_convolution_can_be_the_last_layer():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()).double()
    ensemble = pluribus.ensemble(net, Multihead(members=3)).eval()
    x = torch.randn(5, 3, 6, 6, dtype=torch.double)
    answers = ensemble(x)
    assert answers.shape == (3, 5, 4)
    torch.testing.assert_close(ensemble.fold()(x), answers, rtol=0, atol=1e-12)
    torch.testing.assert_close(ensemble.member(2)(x), answers[2], rtol=0, atol=1e-12)
