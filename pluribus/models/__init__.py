"""Plain base networks, as the papers have them. No ensemble code."""

from .densenet import densenet
from .registry import MODELS, build
from .resnet import resnet, resnet50
from .small import lenet5, mlp, small_cnn
from .vgg import vgg, vgg_like
from .vit import VisionTransformer, vit
from .wide_resnet import wide_resnet

__all__ = [
    "MODELS",
    "VisionTransformer",
    "build",
    "densenet",
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
