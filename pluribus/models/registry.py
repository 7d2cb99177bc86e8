"""Networks by name, built to fit the data: `build("resnet20", shape=(3, 32, 32), outputs=10)`; also a user's own factory."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import nn

from ..core.suggestions import describe_unknown
from .densenet import densenet
from .factories import ModelError, import_factory
from .fast_cnn import fast_cnn, fast_resnet
from .resnet import resnet, resnet50
from .small import lenet5, mlp, small_cnn
from .tabular import tabular
from .vgg import vgg, vgg_like
from .vit import VisionTransformer
from .wide_resnet import wide_resnet

DERIVED = ("classes", "outputs", "channels", "size", "inputs", "shape", "column_widths")
"""Arguments of a factory that are derived from the data; a factory gets those that it takes."""


@dataclass(frozen=True)
class ModelEntry:
    """A network that `build` knows by name."""

    summary: str
    factory: Callable[..., nn.Module]
    needs_images: bool = True
    options: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        fixed = self.factory.keywords if isinstance(self.factory, partial) else {}
        names = [name for name in inspect.signature(self.factory).parameters if name not in DERIVED and name not in fixed]
        object.__setattr__(self, "options", tuple(names))


MODELS: dict[str, ModelEntry] = {
    "mlp": ModelEntry("dense layers with ReLU; any input, flattened", mlp, needs_images=False),
    "tabular": ModelEntry("embeddings of numbers and categories, and dense layers, for tables", tabular, needs_images=False),
    "lenet5": ModelEntry("LeNet-5 in Caffe's form, 20-50-500", lenet5),
    "small-cnn": ModelEntry("three 3×3 convolutions, 16-32-32", small_cnn),
    "fast-cnn": ModelEntry("six 3×3 convolutions with BatchNorm over 2×2 patches; CIFAR-10 in minutes on two cores", fast_cnn),
    "fast-resnet": ModelEntry("the fast network with residual blocks of equal shape, for shared weights", fast_resnet),
    "vgg-like": ModelEntry("13 convolutions with BatchNorm and dropout; the variance paper's", vgg_like),
    "vgg16": ModelEntry("VGG16 with BatchNorm", partial(vgg, depth=16)),
    "vgg19": ModelEntry("VGG19 with BatchNorm", partial(vgg, depth=19)),
    "resnet20": ModelEntry("thin residual network for 32×32", partial(resnet, depth=20)),
    "resnet56": ModelEntry("thin residual network for 32×32", partial(resnet, depth=56)),
    "resnet110": ModelEntry("thin residual network for 32×32", partial(resnet, depth=110)),
    "resnet50": ModelEntry("the ImageNet network, for 224×224 or so", resnet50),
    "densenet40": ModelEntry("DenseNet-BC 40-12", partial(densenet, depth=40)),
    "densenet100": ModelEntry("DenseNet-BC 100-12", partial(densenet, depth=100)),
    "wrn-16-2": ModelEntry("wide residual network, 16 layers, twice as wide", partial(wide_resnet, depth=16, width=2)),
    "wrn-28-10": ModelEntry("wide residual network, 28 layers, ten times as wide", partial(wide_resnet, depth=28, width=10)),
    "wrn": ModelEntry("wide residual network of any depth and width", wide_resnet),
    "resnet": ModelEntry("thin residual network of any depth", resnet),
    "densenet": ModelEntry("DenseNet-BC of any depth and growth", densenet),
    "vgg": ModelEntry("VGG with BatchNorm, of 9, 16 or 19 layers and any width; with 9, for 16×16 or patches", vgg),
    "vit": ModelEntry("a small vision transformer, patches of 4×4", VisionTransformer),
}


WIDEST = 1000
"""Numbers in a row up to which each gets an embedding by default: more would make the first layer the largest by far."""


def choose_default_model(shape: tuple[int, ...]) -> str:
    """The name of a network to begin with, by the shape of one input.

    >>> choose_default_model((3, 32, 32)), choose_default_model((13,)), choose_default_model((5000,))
    ('resnet20', 'tabular', 'mlp')
    """
    if len(shape) == 1 and shape[0] <= WIDEST:
        return "tabular"
    if len(shape) != 3:
        return "mlp"
    if min(shape[1:]) < 16:
        return "small-cnn"
    return "lenet5" if shape[0] == 1 else "resnet20"


def build(
    model: str | Callable[..., nn.Module],
    shape: tuple[int, ...],
    outputs: int,
    *,
    column_widths: tuple[int, ...] | None = None,
    **options: Any,
) -> nn.Module:
    """Build a network by name, or by a factory of your own: the function itself, or its name package.module:factory.

    Args: the name, or the factory, which gets those of the arguments `DERIVED` that it takes; the `shape` of one input,
    `(C, H, W)` or `(F,)`; the number of `outputs`; the `column_widths` of a table (`Columns.column_widths`); options of the
    network.
    Returns: the network, `[B, *shape]` → `[B, outputs]`.
    Raises: ModelError if there is no such network or option, or if it does not fit the data.

    >>> build("mlp", shape=(4,), outputs=3, hidden=(8,))
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=8, bias=True)
      (2): ReLU()
      (3): Linear(in_features=8, out_features=3, bias=True)
    )
    """
    entry = None
    if not isinstance(model, str):
        name, factory = getattr(model, "__name__", type(model).__name__), model
    elif ":" in model:
        name, factory = model, import_factory(model)
    else:
        name = model
        entry = MODELS.get(name) or MODELS.get(name.replace("_", "-"))
        if entry is None:
            message = describe_unknown("model", name, MODELS)
            raise ModelError(message if message.endswith("?") else f"{message}; or one of your own, package.module:factory")
        factory = entry.factory
    if entry and entry.needs_images and len(shape) != 3:
        raise ModelError(
            f"{name} takes images, and the data has rows of {shape[0]} numbers: choose tabular, mlp, or your own network"
        )
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be a Python function or class that returns an nn.Module") from error
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for option in options:
        if option not in (entry.options if entry else parameters) and not takes_any:
            has = ", ".join(entry.options if entry else [n for n in parameters if n not in DERIVED]) or "none"
            raise ModelError(f"{name} has no option {option!r}; it has: {has}")
    if entry:
        options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    for option, value in options.items() if entry else ():
        check_value(name, option, value, parameters[option].default)
    derived = derive_arguments(shape, outputs) | ({"column_widths": column_widths} if column_widths else {})
    arguments = {key: value for key, value in derived.items() if key in parameters} | options
    try:
        net = factory(**arguments)
    except ModelError:
        raise
    except Exception as error:  # whatever a user's own factory raises is about that network
        raise ModelError(f"{name} cannot be built for inputs of {'×'.join(map(str, shape))}: {error}") from error
    if not isinstance(net, nn.Module):
        raise ModelError(f"{name} must return an nn.Module, got {type(net).__name__}")
    return net


def check_value(name: str, option: str, value: Any, default: Any) -> None:
    """Raise ModelError unless the value of an option is of the same kind as its default."""

    def is_count(number: Any) -> bool:
        return isinstance(number, int) and not isinstance(number, bool) and number > 0

    if isinstance(default, bool):
        fits, what = isinstance(value, bool), "true or false"
    elif isinstance(default, int):
        fits, what = is_count(value), "a whole number of at least 1"
    elif isinstance(default, tuple):
        fits, what = isinstance(value, tuple) and all(map(is_count, value)), f"a list of whole numbers, as in {list(default)}"
    elif isinstance(default, float):
        fits, what = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e6, "a positive number"
    else:
        return
    if not fits:
        raise ModelError(f"{option} of {name} must be {what}, got {value!r}")


def derive_arguments(shape: tuple[int, ...], outputs: int) -> dict[str, Any]:
    """The arguments of a factory that are derived from the shape of one input and the number of outputs."""
    inputs = 1
    for length in shape:
        inputs *= length
    facts: dict[str, Any] = {"classes": outputs, "outputs": outputs, "inputs": inputs, "shape": shape}
    return facts | ({"channels": shape[0], "size": shape[1]} if len(shape) == 3 else {})
