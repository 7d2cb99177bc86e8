"""Networks by name, fitted to the data: `build("resnet20", shape=(3, 32, 32), outputs=10)`, or somebody's own factory."""

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn

from ..core.errors import PluribusError
from ..core.suggestions import describe_unknown
from .densenet import densenet
from .resnet import resnet, resnet50
from .small import lenet5, mlp, small_cnn
from .vgg import vgg, vgg_like
from .vit import VisionTransformer
from .wide_resnet import wide_resnet

FITTED = ("classes", "outputs", "channels", "size", "inputs", "shape")
"""Arguments of a factory that follow from the data; a factory takes those that it has."""


class ModelError(PluribusError, ValueError):
    """There is no such network, or it does not fit the data."""


@dataclass(frozen=True)
class Known:
    """A network with a name."""

    summary: str
    factory: Callable[..., nn.Module]
    images: bool = True
    options: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        given = self.factory.keywords if isinstance(self.factory, partial) else {}
        names = [name for name in inspect.signature(self.factory).parameters if name not in FITTED and name not in given]
        object.__setattr__(self, "options", tuple(names))


MODELS: dict[str, Known] = {
    "mlp": Known("dense layers with ReLU; any input, flattened", mlp, images=False),
    "lenet5": Known("LeNet-5 in Caffe's form, 20-50-500", lenet5),
    "small-cnn": Known("three 3×3 convolutions, 16-32-32", small_cnn),
    "vgg-like": Known("13 convolutions with BatchNorm and dropout; the variance paper's", vgg_like),
    "vgg16": Known("VGG16 with BatchNorm", partial(vgg, depth=16)),
    "vgg19": Known("VGG19 with BatchNorm", partial(vgg, depth=19)),
    "resnet20": Known("thin residual network for 32×32", partial(resnet, depth=20)),
    "resnet56": Known("thin residual network for 32×32", partial(resnet, depth=56)),
    "resnet110": Known("thin residual network for 32×32", partial(resnet, depth=110)),
    "resnet50": Known("the ImageNet network, for 224×224 or so", resnet50),
    "densenet40": Known("DenseNet-BC 40-12", partial(densenet, depth=40)),
    "densenet100": Known("DenseNet-BC 100-12", partial(densenet, depth=100)),
    "wrn-16-2": Known("wide residual network, 16 layers, twice as wide", partial(wide_resnet, depth=16, width=2)),
    "wrn-28-10": Known("wide residual network, 28 layers, ten times as wide", partial(wide_resnet, depth=28, width=10)),
    "wrn": Known("wide residual network of any depth and width", wide_resnet),
    "resnet": Known("thin residual network of any depth", resnet),
    "vit": Known("a small vision transformer, patches of 4×4", VisionTransformer),
}


def default(shape: tuple[int, ...]) -> str:
    """The network that one would begin with."""
    if len(shape) != 3:
        return "mlp"
    if min(shape[1:]) < 16:
        return "small-cnn"
    return "lenet5" if shape[0] == 1 else "resnet20"


def build(model: str | Callable[..., nn.Module], shape: tuple[int, ...], outputs: int, **options: Any) -> nn.Module:
    """Build the network for inputs of `shape` and so many outputs.

    `model` is a name of `MODELS`, `package.module:factory`, or a factory. A factory gets those of the arguments `FITTED` that
    it has. Raises ModelError.
    """
    known = None
    if not isinstance(model, str):
        name, factory = getattr(model, "__name__", type(model).__name__), model
    elif ":" in model:
        name, factory = model, imported(model)
    else:
        name, known = model, MODELS.get(model) or MODELS.get(model.replace("_", "-"))
        if known is None:
            said = describe_unknown("model", name, MODELS)
            raise ModelError(said if said.endswith("?") else f"{said}; or one of your own, package.module:factory")
        factory = known.factory
    if known and known.images and len(shape) != 3:
        raise ModelError(f"{name} takes images, and the data has rows of {shape[0]} numbers: choose mlp, or your own network")
    try:
        takes = inspect.signature(factory).parameters
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be a Python function or class that returns an nn.Module") from error
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    for option in options:
        if option not in (known.options if known else takes) and not anything:
            has = ", ".join(known.options if known else [n for n in takes if n not in FITTED]) or "none"
            raise ModelError(f"{name} has no option {option!r}; it has: {has}")
    for option, value in options.items() if known else ():
        check_value(name, option, value, takes[option].default)
    arguments = {key: value for key, value in fitted(shape, outputs).items() if key in takes} | options
    try:
        net = factory(**arguments)
    except ModelError:
        raise
    except Exception as error:  # whatever somebody's own factory raises is about the network, not about us
        raise ModelError(f"{name} cannot be built for inputs of {'×'.join(map(str, shape))}: {error}") from error
    if not isinstance(net, nn.Module):
        raise ModelError(f"{name} must return an nn.Module, got {type(net).__name__}")
    return net


def check_value(name: str, option: str, value: Any, default: Any) -> None:
    """An option of one of our networks must be like its default; torch would say it less plainly."""

    def count(number: Any) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and number > 0

    if isinstance(default, bool):
        fits, what = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        fits, what = count(value), "a whole number of at least 1"
    elif isinstance(default, tuple):
        fits, what = isinstance(value, tuple) and all(map(count, value)), f"a list of whole numbers, as in {list(default)}"
    elif isinstance(default, float):
        fits, what = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e6, "a positive number"
    else:
        return
    if not fits:
        raise ModelError(f"{option} of {name} must be {what}, got {value!r}")


def fitted(shape: tuple[int, ...], outputs: int) -> dict[str, Any]:
    """What follows from the data."""
    inputs = 1
    for length in shape:
        inputs *= length
    facts: dict[str, Any] = {"classes": outputs, "outputs": outputs, "inputs": inputs, "shape": shape}
    return facts | ({"channels": shape[0], "size": shape[1]} if len(shape) == 3 else {})


def imported(name: str) -> Callable[..., nn.Module]:
    """`package.module:factory`, looked for in the working folder, too."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ModelError(f"a network of your own is written package.module:factory, got {name!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        content = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a script may end itself when it is imported
        raise ModelError(f"cannot import {module!r} for the network {name}: {type(error).__name__}: {error}") from error
    if not hasattr(content, attribute):
        near = difflib.get_close_matches(attribute, dir(content), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "name a function or class in it that returns the network"
        raise ModelError(f"the module {module} has no {attribute!r}: {hint}")
    found = getattr(content, attribute)
    if not callable(found):
        raise ModelError(f"{name} must be something to call, got {type(found).__name__}")
    return found
