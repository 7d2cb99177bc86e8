"""The papers' networks: LeNet-5 in Caffe's form and the VGG-like network, with the details of the authors' code.

At scale cpu the fast network, which two cores train in minutes, stands for the VGG-like one.

The zero-mean LeNet has no biases and BatchNorm after each hidden layer; the variational-dropout LeNet has biases, and BatchNorm
after the first dense layer only. In the VGG-like network the last three convolutions and the first dense layer are variational,
and dropout stays elsewhere.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ...models.fast_cnn import fast_cnn
from ...models.small import scale_sizes
from ...models.vgg import vgg_like

Norm = Literal["none", "dense", "all"]


class Absolute(nn.Module):
    """|x|: after a layer whose response is symmetric about zero, a ReLU would drop half of the neurons at random."""

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "softplus": nn.Softplus,
    "absolute": Absolute,
}


def build_lenet(
    classes: int = 10,
    channels: int = 1,
    size: int = 28,
    norm: Norm = "dense",
    bias: bool = True,
    activation: str = "relu",
    dense_activation: str | None = None,
    dropout: float = 0.0,
    width: float = 1.0,
    variational: bool = False,
) -> nn.Module:
    """20-50-500-classes, its layers called conv1, conv2, dense1 and dense2; `dense_activation` follows dense1.

    With `variational` all four layers are, and dropout has the rate 0.
    """
    side = ((size - 4) // 2 - 4) // 2
    first, second, dense = scale_sizes((20, 50, 500), width)
    layers: dict[str, nn.Module] = {}
    for number, (inputs, outputs) in enumerate(((channels, first), (first, second)), 1):
        layers[f"conv{number}"] = nn.Conv2d(inputs, outputs, 5, bias=bias)
        if norm == "all":
            layers[f"norm{number}"] = nn.BatchNorm2d(outputs)
        layers[f"act{number}"] = ACTIVATIONS[activation]()
        layers[f"pool{number}"] = nn.MaxPool2d(2)
    layers["flat"] = nn.Flatten()
    layers["dense1"] = nn.Linear(second * side * side, dense, bias=bias)
    if norm != "none":
        layers["norm3"] = nn.BatchNorm1d(dense)
    layers["act3"] = ACTIVATIONS[dense_activation or activation]()
    if dropout:
        layers["drop"] = nn.Dropout(dropout)
    layers["dense2"] = nn.Linear(dense, classes, bias=bias)
    net = nn.Sequential(OrderedDict(layers))
    return remove_late_dropout(net) if variational else net


def build_dense(
    inputs: int, classes: int = 10, norm: Norm = "dense", bias: bool = True, activation: str = "relu", width: float = 1.0
) -> nn.Module:
    """The dense layers of LeNet-5 with the same names, for features `[B, inputs]`; `norm` is about the first of them."""
    (dense,) = scale_sizes((500,), width)
    layers: dict[str, nn.Module] = {"dense1": nn.Linear(inputs, dense, bias=bias)}
    if norm != "none":
        layers["norm3"] = nn.BatchNorm1d(dense)
    layers |= {"act3": ACTIVATIONS[activation](), "dense2": nn.Linear(dense, classes, bias=bias)}
    return nn.Sequential(OrderedDict(layers))


def build_fast(
    classes: int = 10, channels: int = 3, width: float = 1.0, dropout: float = 0.0, variational: bool = False
) -> nn.Module:
    """The fast network with dropout after the first layers of its last two blocks; none after its variational layers."""
    net = fast_cnn(classes, channels, width=width)
    assert isinstance(net, nn.Sequential)
    blocks = [index for index, layer in enumerate(net) if isinstance(layer, nn.GELU)]
    for index in reversed((blocks[3], blocks[4])):
        net.insert(index + 1, nn.Dropout(dropout))
    return remove_late_dropout(net) if variational else net


def build_vgg(
    classes: int = 10,
    channels: int = 3,
    width: float = 1.0,
    variational: bool = False,
    dropout: float = 1.0,
    dense_activation: str | None = None,
) -> nn.Module:
    """The VGG-like network, its dropout rates times `dropout`; with `variational` there is none after variational layers."""
    net = vgg_like(classes, channels, width)
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p *= dropout
    if dense_activation:
        assert isinstance(net, nn.Sequential)
        last = [index for index, module in enumerate(net) if isinstance(module, nn.ReLU)][-1]
        net[last] = ACTIVATIONS[dense_activation]()
    return remove_late_dropout(net) if variational else net


def remove_late_dropout(net: nn.Module) -> nn.Module:
    """Set the rate of every dropout after the first variational layer to zero, and return the network."""
    first = list_variational_layers(net)[0]
    names = list(dict(net.named_modules()))
    for name, module in net.named_modules():
        if isinstance(module, nn.Dropout) and names.index(name) > names.index(first):
            module.p = 0.0
    return net


def list_variational_layers(net: nn.Module) -> list[str]:
    """Return the names of the variational layers: the last three convolutions, and the first dense layer of several."""
    convolutions = [name for name, module in net.named_modules() if isinstance(module, nn.Conv2d)]
    dense = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)]
    return [*convolutions[-3:], *dense[:-1][:1]]


def build_bottleneck_network(classes: int = 4, inputs: int = 2, hidden: int = 64, bottleneck: int = 2) -> nn.Module:
    """Six dense layers with ReLU, the fifth (called bottleneck) with two outputs; the paper does not give the others' width."""
    layers: dict[str, nn.Module] = {}
    for number in range(1, 5):
        layers[f"dense{number}"] = nn.Linear(inputs if number == 1 else hidden, hidden)
        layers[f"act{number}"] = nn.ReLU()
    layers["bottleneck"] = nn.Linear(hidden, bottleneck, bias=False)
    layers["act5"] = nn.ReLU()
    layers["dense6"] = nn.Linear(bottleneck, classes)
    return nn.Sequential(OrderedDict(layers))


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "lenet": build_lenet,
    "dense": build_dense,
    "vgg": build_vgg,
    "fast": build_fast,
}


def build_network(kind: str, seed: int, **options: Any) -> nn.Module:
    """Build a network with initial weights from the seed; the global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[kind](**options)
