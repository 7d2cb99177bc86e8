"""Which network is trained how at each scale: LeNet-5 and a network for CIFAR with the methods of the papers.

At scale cpu
- one LeNet-5 with dropout is trained for each seed; where the first dense layer alone is random, the dense layers are trained
  on what its convolutions answer, which takes a twelfth of the time of a step;
- batches are larger than the paper's and the learning rate is higher, so there are fewer steps: log α is learnt so much faster
  that Adam can move it as far as in the paper's steps. A control learns it twice as fast: where it ends must not depend on it;
- the fast network, with all rows of CIFAR-10, stands for the VGG-like one. Its last convolution is the variance layer.

At scale smoke the same is done in small. At scale paper all is as published. The times in the docstrings of the recipes are
processor times of steps on a busy machine.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch

from ...core.spec import Spec
from ...methods.single import Single
from ...methods.variance import Variance
from ...methods.variational import VariationalDropout
from ..recipe import Json
from .networks import build_network, list_variational_layers
from .trainings import Training

CONTROL = 2.0
"""How much faster the control learns log α."""
LENET: dict[str, Json] = {
    "smoke": {"data": "digits16", "epochs": 2, "batch": 50, "rows": 100},
    "cpu": {"data": "mnist", "epochs": 12, "batch": 500, "lr": 2e-3},
    "paper": {"data": "mnist", "epochs": 200},
}
"""How the whole LeNet-5 is trained at each scale."""
DENSE: dict[str, Json] = {"smoke": LENET["smoke"], "cpu": LENET["cpu"] | {"epochs": 60}}
"""How its dense layers are trained on features."""
FEATURES = {"smoke": 10, "cpu": 800}
"""The features of an image."""
FAST: dict[str, Json] = {
    "smoke": {"data": "digits32", "epochs": 1, "batch": 50, "rows": 100},
    "cpu": {"data": "cifar10", "epochs": 8, "batch": 256},
}
"""How the fast network is trained."""
MUON: Json = {
    "optimizer": "muon",
    "lr": 0.09,
    "weight_decay": 3e-3,
    "bias_lr": 4.0,
    "bias_decay": False,
    "warmup": 0.8,
}
"""The recipe fast, with which the network with dropout is trained at scale cpu; what starts from it is trained by Adam."""
VGG: Json = {"data": "cifar10", "epochs": 550, "batch": 100, "beta1": 0.95}
ROWS = {"digits16": 100, "digits32": 100, "mnist": 60_000, "cifar10": 50_000}
PAPER_REACH = {"lenet": 200 * 300 * 1e-3 / 2, "cifar": 550 * 500 * 1e-3 / 2}
"""How far Adam can move a number in the paper's steps, by the sum of its learning rates, which fall linearly to 0."""
TRACKED = {"smoke": 40, "cpu": 2_000, "paper": 10_000}
"""Test rows on which phases are tracked."""
BOUNDED = {"smoke": 50, "cpu": 10_000, "paper": 10_000}
"""Training rows on which the bound is tracked."""
DENSE_DEPARTURE = (
    "At scale cpu the dense layers alone are trained, on features of a LeNet-5 that was trained with dropout, wherever "
    "the first "
    "dense layer alone is random: tables 1 and 3 (rows dense1), figures 3, 4, 5 and 9, noises, kappa and absolute. "
    "Networks with "
    "random convolutions are trained as a whole: table 2, and the other rows of table 3."
)
FAST_DEPARTURE = (
    "At scale cpu the fast network stands for the VGG-like one. It has one dense layer, the classifier, so its last three "
    "convolutions are variational, and its variance layer is the last convolution; dropout with a rate of 0.1 follows the "
    "fourth "
    "and the fifth convolution."
)
DENSE_ABOUT = (
    "the dense layers of LeNet-5 on the features of one that was trained with dropout, all of MNIST, 60 epochs with batches of "
    "500 and a learning rate of 0.002 falling to 0; three seeds."
)
"""How the dense layers are trained at scale cpu, for descriptions."""


def compute_reach(options: Json) -> float:
    """Return how far Adam can move a number in a training, by the sum of its learning rates.

    >>> round(compute_reach({"data": "mnist", "epochs": 60, "batch": 500, "lr": 2e-3}), 2)
    7.2
    """
    return options["epochs"] * ROWS[options["data"]] / options["batch"] * options.get("lr", 1e-3) / 2


def scale_log_alpha_rate(kind: str, options: Json) -> float:
    """Return the learning rate of log α over that of the weights with which it can move as far as in the paper's steps.

    >>> scale_log_alpha_rate("lenet", LENET["cpu"] | {"epochs": 60}), scale_log_alpha_rate("lenet", LENET["smoke"])
    (4.2, 100.0)
    """
    if options["data"].startswith("digits"):
        return 100.0
    return round(PAPER_REACH[kind] / compute_reach(options), 1)


def configure_lenet(scale: str, spec: Spec, seed: int = 0, **network: Any) -> Training:
    """The whole LeNet-5 at a scale; `network` are options of `networks.build_lenet`."""
    size = {"size": 16, "width": 0.2} if scale == "smoke" else {}
    return Training(network={"kind": "lenet"} | size | network, spec=spec, seed=seed, **LENET[scale])


def configure_dropout_lenet(scale: str, seed: int = 0) -> Training:
    """LeNet-5 with binary dropout before the classifier: table 2's network, and the source of features."""
    return configure_lenet(scale, Single(), seed, norm="dense", dropout=0.5)


def configure_dense(scale: str, spec: Spec, seed: int, features: Training, **network: Any) -> Training:
    """The dense layers of LeNet-5 on the features of a trained network, at scale smoke or cpu."""
    width = {"width": 0.2} if scale == "smoke" else {}
    return Training(
        network={"kind": "dense", "inputs": FEATURES[scale]} | width | network,
        spec=spec,
        seed=seed,
        features=features.to_json(),
        bounded=BOUNDED[scale],
        **DENSE[scale],
    )


def configure_zero_mean_lenet(scale: str, seed: int = 0, noise: str = "gaussian", activation: str = "relu") -> Training:
    """LeNet-5 without biases whose first dense layer is a variance layer; `activation` follows it."""
    spec = Variance(noise=noise, include="dense1")  # type: ignore[arg-type]
    if scale == "paper":
        own = {} if activation == "relu" else {"dense_activation": activation}
        return replace(configure_lenet(scale, spec, seed, norm="all", bias=False, **own), bounded=BOUNDED[scale])
    return configure_dense(scale, spec, seed, configure_dropout_lenet(scale, seed), bias=False, activation=activation)


def configure_variational_lenet(
    scale: str, seed: int = 0, kind: str = "layer", activation: str = "relu", faster: float = 1.0
) -> Training:
    """LeNet-5 whose first dense layer is variational; with one α for the layer its phases are tracked."""
    rate = 1.0 if scale == "paper" else scale_log_alpha_rate("lenet", DENSE[scale])
    spec = VariationalDropout(parameterization=kind, log_alpha_rate=faster * rate, include="dense1")  # type: ignore[arg-type]
    if scale == "paper":
        own = {} if activation == "relu" else {"dense_activation": activation}
        training = replace(configure_lenet(scale, spec, seed, norm="dense", **own), bounded=BOUNDED[scale])
    else:
        training = configure_dense(scale, spec, seed, configure_dropout_lenet(scale, seed), activation=activation)
    return replace(training, tracked=TRACKED[scale] if kind == "layer" else 0)


def configure_noisy_lenet(scale: str, seed: int = 0, faster: float = 1.0) -> Training:
    """LeNet-5 with all four layers variational; at scales smoke and cpu from the network with dropout."""
    rate = 1.0 if scale == "paper" else scale_log_alpha_rate("lenet", LENET[scale])
    spec = VariationalDropout(log_alpha_rate=faster * rate)
    if scale == "paper":
        return replace(configure_lenet(scale, spec, seed, norm="dense"), bounded=BOUNDED[scale])
    training = configure_lenet(scale, spec, seed, norm="dense", dropout=0.5, variational=True)
    return replace(training, start=configure_dropout_lenet(scale, seed).to_json(), bounded=BOUNDED[scale] // 5)


def configure_cifar(scale: str, spec: Spec, seed: int = 0, *, tracked: int = 0, **options: Any) -> Training:
    """The network for CIFAR at a scale; variational where the spec is."""
    variational = spec.name == "variational-dropout"
    if scale == "paper":
        network: Json = {"kind": "vgg", "width": 1.0, "variational": variational}
        base = dict(VGG)
    else:
        network = {"kind": "fast", "width": 0.1 if scale == "smoke" else 1.0, "dropout": 0.1, "variational": variational}
        base = FAST[scale] | ({} if scale == "smoke" else {"augmentation": "small-crop-flip"})
    network |= {name: options.pop(name) for name in ("classes", "dense_activation") if name in options}
    return Training(network=network, spec=spec, seed=seed, tracked=tracked, **(base | options))


def configure_dropout_cifar(scale: str, seed: int = 0, **options: Any) -> Training:
    """The network for CIFAR with its binary dropout."""
    own: Json = {"settings": MUON, "augmentation": "small-crop-alternate"} if scale == "cpu" else {}
    return configure_cifar(scale, Single(), seed, **(own | options))


@cache
def find_variational_layers(scale: str) -> tuple[str, ...]:
    """Return the names of the variational layers of the network for CIFAR. They are the same at every width."""
    with torch.device("meta"):  # no weights are drawn for the names
        return tuple(list_variational_layers(build_network("vgg" if scale == "paper" else "fast", 0)))


STARTED: Json = {"epochs": 6}
"""How long networks for CIFAR are trained at scale cpu that start from the one with dropout."""


def configure_variational_cifar(
    scale: str, seed: int = 0, prior: str = "log-uniform", faster: float = 1.0, **options: Any
) -> Training:
    """The network for CIFAR with one α for each of its variational layers, with its phases tracked."""
    own = {} if scale == "paper" else start_from_dropout(scale, seed)
    rate = 1.0 if scale == "paper" else scale_log_alpha_rate("cifar", FAST[scale] | own)
    spec = VariationalDropout(
        prior=prior,  # type: ignore[arg-type]
        log_alpha=-10.0,
        log_alpha_rate=faster * rate,
        include=list(find_variational_layers(scale)),
    )
    bounded = BOUNDED[scale] // 5
    return configure_cifar(scale, spec, seed, tracked=TRACKED[scale], bounded=bounded, **(own | options))


def configure_zero_mean_cifar(scale: str, seed: int = 0) -> Training:
    """The network for CIFAR with one variance layer: the first dense layer, or the fast network's last convolution."""
    spec = Variance(include=find_variational_layers(scale)[-1])
    return configure_cifar(scale, spec, seed, **({} if scale == "paper" else start_from_dropout(scale, seed)))


def start_from_dropout(scale: str, seed: int) -> Json:
    """The options of a training that starts from the network with dropout."""
    return {"start": configure_dropout_cifar(scale, seed).to_json()} | (STARTED if scale == "cpu" else {})
