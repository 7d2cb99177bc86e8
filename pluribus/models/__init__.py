"""Plain base networks, as the papers have them, without ensemble code. `build` makes them by name to fit the data."""

from .densenet import densenet
from .fast_cnn import fast_cnn, fast_resnet
from .registry import MODELS, ModelEntry, ModelError, build, choose_default_model
from .resnet import resnet, resnet50
from .small import lenet5, mlp, small_cnn
from .vgg import vgg, vgg_like
from .vit import VisionTransformer, vit
from .wide_resnet import wide_resnet

__all__ = [
    "MODELS",
    "ModelEntry",
    "ModelError",
    "VisionTransformer",
    "build",
    "choose_default_model",
    "densenet",
    "fast_cnn",
    "fast_resnet",
    "lenet5",
    "mlp",
    "resnet",
    "resnet50",
    "small_cnn",
    "vgg",
    "vgg_like",
    "vit",
    "wide_resnet",
]
