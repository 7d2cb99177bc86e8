"""Which network is trained how at each scale: LeNet-5 and the VGG-like network with the methods of the papers."""

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

PAPER_EPOCHS = {"lenet": 200, "vgg": 550}
LENET: dict[str, Json] = {
    "smoke": {"data": "digits16", "epochs": 2, "batch": 50, "rows": 100},
    "cpu": {"data": "mnist", "epochs": 8},
    "paper": {"data": "mnist", "epochs": 200},
}
"""How LeNet-5 is trained at each scale."""
VGG: dict[str, Json] = {
    "smoke": {"data": "digits32", "epochs": 1, "batch": 50, "rows": 100},
    "cpu": {"data": "cifar10", "epochs": 10, "batch": 100, "rows": 10_000},
    "paper": {"data": "cifar10", "epochs": 550, "batch": 100, "beta1": 0.95},
}
NARROW = (
    "the VGG-like network an eighth as wide, with a quarter of its dropout rates, on 10,000 rows of CIFAR-10 without "
    "augmentation, 10 epochs instead of 550; where layers are variational, 8 epochs more from there, log α learnt 100 times "
    "faster than the weights."
)
"""How the VGG-like network is trained at scale cpu."""
TRIALS = (
    "Rates of log α, warm-ups and the narrow network at scale cpu were found by trial, by whether a transition shows on test "
    "rows in the time that there is. The trials are not recorded."
)
TRACKED = {"smoke": 40, "cpu": 2_000, "paper": 10_000}
"""Test rows on which phases are tracked."""
WIDTHS = {"smoke": 0.05, "cpu": 0.125, "paper": 1.0}
"""Channels of the VGG-like network as a share of the paper's."""


def configure_lenet(scale: str, spec: Spec, seed: int = 0, **network: Any) -> Training:
    """LeNet-5 at a scale; `network` are options of `networks.build_lenet`."""
    size = {"size": 16, "width": 0.2} if scale == "smoke" else {}
    return Training(network={"kind": "lenet"} | size | network, spec=spec, seed=seed, **LENET[scale])


SLOWLY: Json = {"rows": 10_000, "epochs": 40, "kl_warmup": 8.0}
"""A setting that shows a phase transition. On all rows KL has too little weight for one in an hour; without the warm-up a
fast log α jumps before anything is learnt."""


def configure_tracked_lenet(scale: str, **network: Any) -> Training:
    """LeNet-5 with a variational first dense layer, with its phases tracked."""
    rate = {"smoke": 100.0, "cpu": 3000.0, "paper": 1.0}[scale]
    spec = VariationalDropout(log_alpha_rate=rate, include="dense1")
    slowly = SLOWLY if scale == "cpu" else {}
    return replace(configure_lenet(scale, spec, norm="dense", **network), tracked=TRACKED[scale], **slowly)


def configure_vgg(scale: str, spec: Spec, seed: int = 0, *, tracked: int = 0, **options: Any) -> Training:
    """The VGG-like network at a scale; variational where the spec is."""
    network = {"kind": "vgg", "width": WIDTHS[scale], "variational": spec.name == "variational-dropout"}
    if scale == "cpu":
        network["dropout"] = 0.25  # with the rates of the whole network so few channels learn nothing in so few epochs
    network |= {name: options.pop(name) for name in ("classes", "dense_activation") if name in options}
    return Training(network=network, spec=spec, seed=seed, tracked=tracked, **(dict(VGG[scale]) | options))


def configure_dropout_vgg(scale: str, seed: int = 0, **options: Any) -> Training:
    """The VGG-like network with its binary dropout."""
    return configure_vgg(scale, Single(), seed, **options)


@cache
def find_variational_layers() -> tuple[str, ...]:
    """Return the names of the VGG-like network's variational layers. They are the same at every width."""
    with torch.device("meta"):  # no weights are drawn for the names
        return tuple(list_variational_layers(build_network("vgg", 0)))


def configure_variational_vgg(scale: str, seed: int = 0, prior: str = "log-uniform", **options: Any) -> Training:
    """The VGG-like network with one α for each of its variational layers, with its phases tracked."""
    spec = VariationalDropout(
        prior=prior,  # type: ignore[arg-type]
        log_alpha=-10.0,
        log_alpha_rate=100.0 if scale == "cpu" else scale_log_alpha_rate(scale, "vgg"),
        include=list(find_variational_layers()),
    )
    warm: Json = {"start": configure_dropout_vgg(scale, seed, **options).to_json(), "epochs": 8} if scale == "cpu" else {}
    return configure_vgg(scale, spec, seed, tracked=TRACKED[scale], **(warm | options))


def configure_zero_mean_vgg(scale: str, seed: int = 0) -> Training:
    """The VGG-like network with its first dense layer a variance layer; at scale cpu from the network with dropout."""
    dense = find_variational_layers()[-1]
    start: Json = {"start": configure_dropout_vgg(scale, seed).to_json(), "epochs": 4} if scale == "cpu" else {}
    return configure_vgg(scale, Variance(include=dense), seed, **start)


def configure_zero_mean_lenet(scale: str, noise: str = "gaussian", **network: Any) -> Training:
    """LeNet-5 without biases, BatchNorm after each hidden layer, its first dense layer a variance layer."""
    spec = Variance(noise=noise, include="dense1")  # type: ignore[arg-type]
    return configure_lenet(scale, spec, norm="all", bias=False, **network)


def scale_log_alpha_rate(scale: str, kind: str) -> float:
    """Return the learning rate of log α over that of the weights: Adam then moves log α as far as in the paper's epochs."""
    epochs = {"lenet": LENET, "vgg": VGG}[kind][scale]["epochs"]
    return PAPER_EPOCHS[kind] / epochs
