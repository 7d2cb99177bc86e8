"""The base networks are those of the papers: parameters, FLOPs, shapes."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import pluribus
from pluribus import MIMO, BatchEnsemble, MCDropout, TreeNet, Variance, Views, models
from pluribus.core.affine import copy_to_meta
from pluribus.core.describe import count_flops, count_parameters
from pluribus.core.initialization import redraw_weights
from pluribus.runs.config import build_config
from pluribus.training.optimizers import make_optimizer, separate_parameters

COUNTS = {
    "ResNet-56": (lambda c: models.resnet(56, c), 853_018, 858_868),
    "ResNet-110": (lambda c: models.resnet(110, c), 1_727_962, 1_733_812),
    "DenseNet-BC 40-12": (lambda c: models.densenet(40, 12, c), 176_122, 188_092),
    "DenseNet-BC 100-12": (lambda c: models.densenet(100, 12, c), 769_162, 800_032),
    "VGG16": (lambda c: models.vgg(16, c), 15_253_578, 15_299_748),
    "VGG19": (lambda c: models.vgg(19, c), 20_565_834, 20_612_004),
    "WRN-28-10": (lambda c: models.wide_resnet(28, 10, c), 36_479_194, 36_536_884),
}
PRINTED = {  # in thousands, as the papers print them; NOTES: 800.03K is printed 800.3K
    "ResNet-56": (853.02, 858.87),
    "ResNet-110": (1730, 1730),
    "DenseNet-BC 40-12": (176.12, 188.09),
    "DenseNet-BC 100-12": (769.16, 800.03),
    "VGG16": (15250, 15300),
    "VGG19": (20570, 20610),
    "WRN-28-10": (36479, 36537),
}


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_are_those_of_the_papers(name):
    make, ten, hundred = COUNTS[name]
    with torch.device("meta"):
        assert (count_parameters(make(10)), count_parameters(make(100))) == (ten, hundred)
    for ours, theirs in zip((ten, hundred), PRINTED[name], strict=True):
        assert ours / 1000 == pytest.approx(theirs, abs=10 if theirs > 1000 else 0.006)  # half of the last place printed


def test_the_small_networks():
    assert count_parameters(models.lenet5()) == 431_080
    with torch.device("meta"):
        assert count_parameters(models.resnet50()) == 25_557_032
    assert count_parameters(models.mlp(64, 10, (32,))) == 64 * 32 + 32 + 32 * 10 + 10
    assert count_parameters(models.small_cnn()) == 448 + 4640 + 9248 + 5130


def test_eight_epochs_of_the_fast_network_on_cifar10_stay_within_its_budget():
    with torch.device("meta"):
        net, x = models.fast_cnn(), torch.empty(1, 3, 32, 32)
    assert count_parameters(net) == 9 * (24 * 48 + 48 * 48 + 48 * 96 + 96 * 96 + 96 * 112 + 112 * 112) + 4 * 256 + 1130
    assert 3 * count_flops(net, x) * 50_000 * 8 < 2.5e13


def test_the_recipe_fast_stays_within_the_same_budget():
    """Everything that a step computes: the first convolution needs no gradient of its input, and the optimiser's products."""
    config = build_config({"recipe": "fast"})
    ensemble = pluribus.ensemble(models.fast_cnn(), pluribus.Single(), example=torch.zeros(2, 3, 32, 32))
    optimizer = make_optimizer(separate_parameters(ensemble, ensemble.param_groups(), config), config)
    x, y = torch.zeros(config.batch_size, 3, 32, 32), torch.zeros(config.batch_size).long()

    def take_step():
        ensemble.loss(x, y).backward()
        optimizer.step()

    with FlopCounterMode(display=False) as counter:
        take_step()
    flops = counter.get_total_flops()
    products = sum(
        5 * (2 * 2 * out * out * rest + 2 * out**3)  # two products with the weight and one of squares, in each iteration
        for out, rest in ((48, 216), (48, 432), (96, 432), (96, 864), (112, 864), (112, 1008))
    )
    not_needed = 2 * 16 * 16 * (9 * 24 * 48 + 2 * 12 * 12)
    assert flops == 256 * (3 * count_flops(models.fast_cnn(), x[:1]) - not_needed) + products
    assert flops * 50_000 / 256 * config.epochs < 2.5e13


def test_the_transformed_patches_are_a_rotation_at_unit_variance():
    torch.manual_seed(0)
    transform = models.fast_cnn()[0]
    x = torch.randn(64, 3, 8, 8) * torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1, 1)
    basis = transform.basis.flatten(1).double()
    torch.testing.assert_close(basis @ basis.T, torch.eye(12, dtype=torch.double), atol=1e-6, rtol=0)
    flat = torch.full((1, 3, 2, 2), 2.0)
    torch.testing.assert_close(transform.basis.flatten(1) @ flat.flatten(), torch.eye(12)[0] * 2 * 12**0.5)  # brightness alone
    answer = transform.train()(x)
    assert answer.shape == (64, 24, 4, 4)
    assert bool((answer >= 0).all())
    components = answer[:, :12] - answer[:, 12:]
    torch.testing.assert_close(components.var((0, 2, 3), correction=0), torch.ones(12), atol=1e-3, rtol=0)
    assert not list(transform.parameters())


def test_wide_resnet_under_mimo_costs_what_the_paper_says():
    """On the meta device, where FLOPs are counted and nothing is computed."""
    with torch.device("meta"):
        net, x = models.wide_resnet(28, 10), torch.empty(1, 3, 32, 32)
    # torch counts convolutions and matrix products: 0.69 % less than the paper's 10.559G and 10.561G. Two FLOPs a parameter,
    # what an L2 penalty in the profiled graph would cost, close both gaps to within the paper's rounding: our inference.
    base = count_flops(net, x)
    assert base == 10_486_657_536
    assert base + 2 * count_parameters(net) == pytest.approx(10.559e9, abs=1e6)
    ensemble = pluribus.ensemble(models.wide_resnet(28, 10), MIMO(members=3))
    assert count_parameters(ensemble) == 36_492_878
    heads, first = mimo_flops(width=10)
    assert base + heads + first + 2 * count_parameters(ensemble) == pytest.approx(10.561e9, abs=1e6)


def test_mimo_costs_its_heads_and_its_first_layer_more():
    x = torch.randn(1, 3, 32, 32)
    net = models.wide_resnet(10, 1)
    ensemble = pluribus.ensemble(net, MIMO(members=3))
    ensemble.executor.prepare(ensemble, torch.randn(2, 3, 32, 32))
    heads, first = mimo_flops(width=1)
    base = count_flops(net, x)
    assert count_flops(ensemble, (Views(x.expand(3, *x.shape)),)) == base + heads + first
    assert count_flops(ensemble.fold(), x) == base + heads  # the folded first layer costs nothing more


def mimo_flops(width):
    """What two more members add to a wide ResNet: heads of 64 · width inputs, and a first layer of 16 filters."""
    return 2 * 2 * 64 * width * 10, 2 * (2 * 9 * 3 * 16 * 32 * 32)


NETWORKS = {
    "mlp": (lambda: models.mlp(3 * 32 * 32, 7), (3, 32, 32)),
    "lenet5": (lambda: models.lenet5(7), (1, 28, 28)),
    "small_cnn": (lambda: models.small_cnn(7), (3, 32, 32)),
    "fast_cnn": (lambda: models.fast_cnn(7, width=0.25), (3, 32, 32)),
    "fast_resnet": (lambda: models.fast_resnet(7, width=0.25), (3, 32, 32)),
    "vgg_like": (lambda: models.vgg_like(7, width=0.1), (3, 32, 32)),
    "vgg16": (lambda: models.vgg(16, 7), (3, 32, 32)),
    "resnet": (lambda: models.resnet(8, 7), (3, 32, 32)),
    "resnet50": (lambda: models.resnet50(7), (3, 64, 64)),
    "densenet": (lambda: models.densenet(10, 4, 7), (3, 32, 32)),
    "wrn": (lambda: models.wide_resnet(10, 1, 7), (3, 32, 32)),
    "wrn, preactivated": (lambda: models.wide_resnet(10, 1, 7, shortcut="preactivated"), (3, 32, 32)),
    "vit": (lambda: models.vit(7), (3, 32, 32)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_they_answer_for_every_row_and_carry_gradients_to_every_parameter(name):
    make, shape = NETWORKS[name]
    net = make().train()
    answer = net(torch.randn(3, *shape))
    assert answer.shape == (3, 7)
    answer.square().sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


BECOME = [MIMO(2), BatchEnsemble(2), TreeNet(2), MCDropout(samples=2), Variance(samples=2)]
MADE = ["lenet5", "fast_cnn", "resnet", "densenet", "wrn", "vit", "vgg_like"]
PAIRS = [(name, spec) for first, name in enumerate(MADE) for spec in BECOME[first % 2 :: 2]]
"""Every network with every other method, and every method with several networks."""


@pytest.mark.parametrize(("name", "spec"), PAIRS, ids=str)
def test_they_become_ensembles(name, spec):
    make, shape = NETWORKS[name]
    ensemble = pluribus.ensemble(make(), spec).eval()
    assert ensemble(torch.randn(3, *shape)).shape == (2, 3, 7)


def test_the_two_shortcuts_have_the_same_parameters_and_other_answers():
    raw, active = (models.wide_resnet(10, 1, shortcut=kind) for kind in ("raw", "preactivated"))
    active.load_state_dict(raw.state_dict())
    x = torch.randn(2, 3, 32, 32)
    assert not torch.allclose(raw.eval()(x), active.eval()(x))


def test_convolutions_start_he_normal():
    net = models.wide_resnet(10, 4)
    weight = net[2][0].conv2.weight
    assert weight.var().item() == pytest.approx(2 / weight[0].numel(), rel=0.05)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: models.resnet(21), "6n \\+ 2"),
        (lambda: models.densenet(41), "6n \\+ 4"),
        (lambda: models.wide_resnet(27), "6n \\+ 4"),
        (lambda: models.wide_resnet(shortcut="none"), "'raw' or 'preactivated'"),
        (lambda: models.vgg(13), "9, 16 or 19"),
        (lambda: models.resnet(8, patch=0), "at least 1"),
        (lambda: models.vit(size=30), "must divide"),
        (lambda: models.lenet5(size=8), "at least 16"),
        (lambda: models.small_cnn(size=4), "at least 8"),
        (lambda: models.fast_cnn(size=12), "at least 16"),
        (lambda: models.fast_resnet(size=12), "at least 16"),
    ],
)
def test_impossible_sizes_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_skeleton_costs_no_memory():
    assert all(p.is_meta for p in copy_to_meta(models.resnet(8)).parameters())


def test_convolutions_of_the_fast_network_start_as_the_identity_and_so_do_redrawn_ones():
    net = models.fast_cnn(width=2)
    other = redraw_weights(copy.deepcopy(net))
    for layers in (net, other):
        convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
        assert len(convolutions) == 6
        for layer in convolutions:
            passed = min(layer.in_channels, layer.out_channels)
            x = torch.randn(2, layer.in_channels, 8, 8)
            assert torch.equal(layer(x)[:, :passed], x[:, :passed])
    assert not torch.equal(net[1].weight[24:], other[1].weight[24:])
    assert not torch.equal(net[-1].weight, other[-1].weight)


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_fast_residual_network_has_convolutions_of_equal_shape(blocks):
    net = models.fast_resnet(width=0.5, blocks=blocks)
    shapes = [tuple(layer.weight.shape) for layer in net.modules() if isinstance(layer, torch.nn.Conv2d)]
    assert shapes == [(32, 24, 3, 3)] + [(32, 32, 3, 3)] * (2 + 6 * blocks)


@pytest.mark.parametrize(
    "make",
    [lambda **o: models.resnet(8, **o), lambda **o: models.densenet(10, 4, **o), lambda **o: models.vgg(9, width=0.1, **o)],
)
def test_patches_are_smaller_images_with_more_channels(make):
    """The network that sees patches is the network of images of half the size with four times the channels."""
    torch.manual_seed(0)
    patched = make(patch=2).eval()
    torch.manual_seed(0)
    plain = make(channels=12).eval()
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(patched(x), plain(nn.functional.pixel_unshuffle(x, 2)))


def test_dropout_stands_after_every_convolution_of_a_residual_network_but_the_first():
    net = models.resnet(14, dropout=0.5)
    assert [layer.p for layer in net.modules() if isinstance(layer, nn.Dropout)] == [0.5] * 12
    assert not [layer for layer in models.resnet(14).modules() if isinstance(layer, nn.Dropout)]
