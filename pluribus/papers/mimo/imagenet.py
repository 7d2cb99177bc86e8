"""What tables 3 and 4 share: ResNet-50 on ImageNet."""

from ..recipe import Json

MODELS: dict[str, dict[str, Json]] = {
    "smoke": {"usual": {"name": "resnet50", "width": 0.0625}, "wide": {"name": "resnet50", "width": 0.125}},
    "paper": {"usual": {"name": "resnet50"}, "wide": {"name": "resnet50", "width": 2.0}},
}
TRAININGS: dict[str, Json] = {
    "smoke": {"epochs": 1, "batch_size": 24, "validation": 0.0, "augment": "none"},
    "paper": {
        "epochs": 90,
        "batch_size": 4096,
        "optimizer": "sgd",
        "nesterov": True,
        "lr": 0.1,
        "weight_decay": 2e-4,
        "warmup": 5,
        "schedule": "step",
        "milestones": [1 / 3, 2 / 3, 8 / 9],
        "gamma": 0.1,
        "validation": 0.0,
        "augment": "crop-flip",
    },
}
"""Of the published settings; those that the text leaves open, as the milestones, are those of ResNet-50's own training."""


def configure(scale: str, method: Json, model: str, **changes: object) -> Json:
    """The settings of a training; its data are named when the cell is measured."""
    settings = TRAININGS[scale] | {"model": MODELS[scale][model], "method": method}
    return settings | (changes if scale == "paper" else {})
