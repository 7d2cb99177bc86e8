"""What is done to trained rows: folding, and the gradients of convolutions."""

import torch
from torch import nn

import pluribus
from pluribus import Inner, Maxout
from pluribus.core.folding import copy_plain
from pluribus.models import resnet
from pluribus.papers.inner.trained_rows import average_copies, average_networks, measure_spread
from pluribus.papers.trained_runs import ConvolutionGradients


def test_copies_are_averaged_by_inverse_variance_as_inner_folds_them():
    ensemble = pluribus.ensemble(resnet(8, width=0.25), Inner(copies=3, fold="inverse-variance")).double().eval()
    x = torch.randn(4, 3, 8, 8, dtype=torch.double)
    torch.testing.assert_close(copy_plain(ensemble.net, average_copies)(x), ensemble.fold()(x)[0])


def test_averaged_maxout_is_a_plain_network_with_other_answers():
    ensemble = pluribus.ensemble(resnet(8, width=0.25), Maxout(copies=3)).eval()
    plain = copy_plain(ensemble.net, average_copies)
    assert sum(p.numel() for p in plain.parameters()) == sum(p.numel() for p in resnet(8, width=0.25).parameters())
    x = torch.randn(4, 3, 8, 8)
    assert (plain(x) - ensemble(x)[0]).abs().max() > 0.1


def test_the_average_of_equal_networks_is_that_network_and_others_lie_between():
    first, second = resnet(8, width=0.25).eval(), resnet(8, width=0.25).eval()
    x = torch.randn(4, 3, 8, 8)
    torch.testing.assert_close(average_networks([first, first])(x), first(x))
    mixed = average_networks([first, second])
    torch.testing.assert_close(mixed[-1].weight, (first[-1].weight + second[-1].weight) / 2)
    share = (mixed[0][0].weight - second[0][0].weight) / (first[0][0].weight - second[0][0].weight)
    assert 0 < share.mean() < 1
    torch.testing.assert_close(share, share.mean().expand_as(share), rtol=1e-3, atol=1e-3)


def test_the_spread_of_new_copies_is_that_of_their_draw():
    """Deviations have m times the variance of the weights, less the part of their mean: √(m − 1) of the norm."""
    ensemble = pluribus.ensemble(nn.Conv2d(16, 64, 3), Inner(copies=4))
    assert abs(measure_spread(ensemble) - 3**0.5) < 0.03
    assert measure_spread(pluribus.ensemble(nn.Conv2d(3, 4, 3), Maxout(copies=2))) is None


def test_the_factor_reaches_weights_and_biases_of_convolutions_alone():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))
    net(torch.randn(5, 3, 3, 3)).sum().backward()
    before = [parameter.grad.clone() for parameter in net.parameters()]
    ConvolutionGradients(0.25).on_before_optimizer_step(None, net, None)
    for index, (parameter, gradient) in enumerate(zip(net.parameters(), before, strict=True)):
        assert torch.equal(parameter.grad, gradient / 4 if index < 2 else gradient)
