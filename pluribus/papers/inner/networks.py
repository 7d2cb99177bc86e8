"""Which networks are trained how at each scale.

Scale `paper` has the published networks and the settings of the repositories that the authors trained them with (appendix H):
what the paper leaves open is theirs.

Scale `cpu` has a shallow and narrow network of each kind, on the first 5,000 training images of CIFAR-10 and all test images.
The networks see patches of 2×2 pixels, which costs a quarter. They are trained for 20 epochs of SGD in batches of 64: 1,580
steps, of which the last 395 have a hundredth of the learning rate. Rate, decay and falls of the rate are those of the published
networks; VGG9 has the falls of the residual networks. More images, or wider networks, would take more than the hour and a half
that table 1 may take on one core. An epoch took 2.2 s of one busy core in ResNet-8, 3.4 s in ResNet-14, 2.5 s in DenseNet-10
and 1.7 s in VGG9, and three to five times as much with maxout: about 95 minutes for table 1, 50 more for figure 3, 11 for table
5, and none for table 2.
"""

from typing import Any

from ..recipe import Json

SEEDS = {"smoke": 1, "cpu": 3, "paper": 3}
COPIES = 4
SGD: Json = {"optimizer": "sgd", "nesterov": True, "lr": 0.1, "weight_decay": 1e-4, "validation": 0.0}
STEPS: Json = {"schedule": "step", "milestones": [0.5, 0.75], "gamma": 0.1}
HALVES: Json = {"schedule": "step", "milestones": [number / 10 for number in range(1, 10)], "gamma": 0.5}
"""VGG's learning rate is halved every 30 of 300 epochs."""
SMALL: Json = {"data": {"name": "cifar10", "first": 5000}, "epochs": 20, "batch_size": 64} | SGD | STEPS
SLOWER: Json = {"lr": 0.05, "weight_decay": 5e-4}
"""VGG has no shortcuts. The paper says 0.9, which is the momentum of the repository that it names; its rate is 0.05."""
PUBLISHED: dict[str, Json] = {
    "ResNet56": {"model": "resnet56", "epochs": 200, "batch_size": 128} | SGD | STEPS | {"nesterov": False},
    "ResNet110": {"model": "resnet110", "epochs": 200, "batch_size": 128, "warmup": 1} | SGD | STEPS | {"nesterov": False},
    "DenseNet40-12": {"model": "densenet40", "epochs": 300, "batch_size": 64} | SGD | STEPS,
    "DenseNet100-12": {"model": "densenet100", "epochs": 300, "batch_size": 64} | SGD | STEPS,
    "VGG16": {"model": "vgg16", "epochs": 300, "batch_size": 128} | SGD | HALVES | SLOWER | {"nesterov": False},
    "VGG19": {"model": "vgg19", "epochs": 300, "batch_size": 128} | SGD | HALVES | SLOWER | {"nesterov": False},
}
SETS = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100"}
NETWORKS: dict[str, dict[str, Json]] = {
    "smoke": {
        "ResNet-8": {"data": "digits", "rows": 100, "epochs": 1, "model": {"name": "resnet", "depth": 8, "width": 0.25}}
        | SGD
        | STEPS
    },
    "cpu": {
        "ResNet-8": SMALL | {"model": {"name": "resnet", "depth": 8, "width": 0.5, "patch": 2}},
        "ResNet-14": SMALL | {"model": {"name": "resnet", "depth": 14, "width": 0.5, "patch": 2}},
        "DenseNet-10": SMALL | {"model": {"name": "densenet", "depth": 10, "growth": 8, "patch": 2}},
        "VGG9": SMALL | {"model": {"name": "vgg", "depth": 9, "width": 0.125, "patch": 2}} | SLOWER,
    },
    "paper": {
        f"{network}, {title}": settings | {"data": data}
        for title, data in SETS.items()
        for network, settings in PUBLISHED.items()
    },
}
ABOUT = {
    "smoke": "100 digits, a quarter of ResNet-8, 1 epoch.",
    "cpu": "The first 5,000 training images of CIFAR-10, in patches of 2×2 pixels; ResNet-8 and ResNet-14 at half the width, "
    "DenseNet-BC 10-8 and VGG9 at an eighth of the width stand for the published networks; 20 epochs of SGD; m = 4; three "
    "seeds.",
    "paper": "The published networks on CIFAR-10 and CIFAR-100, 200 or 300 epochs; m = 4; three seeds.",
}
NOT_RUN = {"CIFAR-100": "the set is not among those that can be had", "the published networks": "they need a GPU"}
DATA: dict[str, tuple[str, ...]] = {"smoke": (), "cpu": ("cifar10",), "paper": ("cifar10", "cifar100")}
RESNETS = {"smoke": ("ResNet-8",), "cpu": ("ResNet-8", "ResNet-14")}
RESNETS["paper"] = tuple(name for name in NETWORKS["paper"] if name.startswith("ResNet"))


def list_networks(*scales: str) -> list[str]:
    """The names of the networks of some scales, each once; without any, of `cpu` and `paper`, which have all."""
    return list(dict.fromkeys(name for scale in scales or ("cpu", "paper") for name in NETWORKS[scale]))


def configure(scale: str, network: str, method: Json, changes: Json | None = None) -> Json:
    """The settings of a training without its seed. `lr_factor` among the changes multiplies the learning rate."""
    settings: Json = NETWORKS[scale][network] | {"method": method} | (changes or {})
    factor: Any = settings.pop("lr_factor", 1)
    return settings | {"lr": settings["lr"] * factor}
