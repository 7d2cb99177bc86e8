"""Regression whose network predicts the noise of its targets: a mean and a variance for every row.

The last layer gets twice its outputs. The first half are the means μ, the second half r become the variances

    σ² = exp(b tanh(r / b)),  b = 30,

which is exp(r) near zero and can neither vanish nor overflow. The loss of a row is the Gaussian negative log-likelihood,
weighted by a power of the variance through which no gradient flows:

    ⌊σ^2β⌋ (½ log 2πσ² + (y − μ)² / 2σ²)

β = 0 is the plain likelihood. Its gradient with respect to μ is divided by σ², so rows that are fitted badly are given a large
variance and are then hardly learnt; β = 1 gives μ the gradient of the squared error, and ½ lies between the two.

Nix & Weigend, "Estimating the mean and variance of the target probability distribution", 1994; Seitzer et al., "On the Pitfalls
of Heteroscedastic Uncertainty Estimation with Probabilistic Neural Networks", ICLR 2022, eq. 4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import pytrees
from .affine import AFFINE, Affine, get_weight_and_bias
from .branching import dry_run
from .errors import ConversionError, FileError
from .output import select_output
from .spec import require_share
from .surgery import Subject, carry_hooks, copy_with
from .texts import quote

BOUND = 30.0
"""Of the logarithm of a variance: standard deviations from 3e-7 to 3e6."""
NAMES = {"gaussian": 0.0, "beta-nll": 0.5}
"""The losses by name, each with its β."""


@dataclass(frozen=True)
class TargetNoise:
    """The network predicts the noise of its targets, and learns it by the β-NLL; `beta` 0 is the Gaussian likelihood itself.

    >>> TargetNoise(beta=0.5)
    TargetNoise(beta=0.5)
    """

    beta: float = NAMES["beta-nll"]

    def __post_init__(self) -> None:
        require_share("beta", self.beta)


def read_noise(noise: "TargetNoise | str | None") -> TargetNoise | None:
    """What `pluribus.ensemble(…, noise=…)` takes: a name, a `TargetNoise`, or None. Raises ValueError for anything else.

    >>> read_noise("gaussian"), read_noise("none")
    (TargetNoise(beta=0.0), None)
    """
    if noise is None or isinstance(noise, TargetNoise):
        return noise
    if noise == "none":
        return None
    if noise not in NAMES:
        raise ValueError(f"noise must be none, {', '.join(NAMES)} or a TargetNoise, got {noise!r}")
    return TargetNoise(NAMES[noise])


class NoiseHead(nn.Module):
    """A last layer of twice the outputs, as means and variances: `[B, …]` → `[B, 2C, …]`, the means first."""

    def __init__(self, layer: nn.Module, noise: TargetNoise) -> None:
        super().__init__()
        self.layer, self.noise = layer, noise
        self.axis = -1 if isinstance(layer, nn.Linear) else 1

    def forward(self, x: Tensor) -> Tensor:
        mean, raw = self.layer(x).chunk(2, self.axis)
        wide = torch.promote_types(raw.dtype, torch.float)  # the exponential leaves the range of half precision
        variance = (BOUND * torch.tanh(raw.to(wide) / BOUND)).exp()
        return torch.cat([mean.to(wide), variance], self.axis)

    def extra_repr(self) -> str:
        return str(self.noise)


def find_noise(net: nn.Module) -> TargetNoise | None:
    """How a network predicts the noise of its targets; None if it does not."""
    return next((module.noise for module in net.modules() if isinstance(module, NoiseHead)), None)


def find_noise_head(net: nn.Module) -> str | None:
    """The name of the layer that answers with means and variances."""
    return next((name for name, module in net.named_modules() if isinstance(module, NoiseHead)), None)


def add_noise_head(net: nn.Module, noise: TargetNoise, example: Any = None, output: int | str | None = None) -> nn.Module:
    """A copy of the network that also answers with the variance of its targets: one, before it is trained.

    Its last layer (the last to run on the `example`; without one, the last that was registered) is replaced by a `NoiseHead`.
    The means stay as they were. Raises ConversionError if there is no such layer, or if, on the example, something is done to
    its answer that would not leave a variance a variance.
    """
    if find_noise(net) is not None:
        raise ConversionError("the network predicts the noise of its targets already: leave noise out")
    subject = Subject(net, example)
    layers = list(subject.layers(AFFINE))
    if not layers:
        raise ConversionError(f"noise= needs a last layer that can be widened, and {type(net).__name__} has none")
    made = replace_head(net, layers[-1], noise)
    if example is not None:
        check_answer(net, made, example, output)
    return made


def replace_head(net: nn.Module, name: str, noise: TargetNoise) -> nn.Module:
    """A copy of the network with a `NoiseHead` in the place of the layer of this name."""
    layer = dict(net.named_modules()).get(name)
    if not isinstance(layer, AFFINE):
        raise ConversionError(f"noise= widens the last layer, and the network has no such layer {name!r}")
    head = NoiseHead(widen_layer(layer), noise).train(layer.training)
    return copy_with(net, {id(layer): head})


def widen_layer(layer: nn.Module) -> nn.Module:
    """The layer with twice its outputs; the second half of them is zero."""
    affine = Affine(layer)
    if affine.groups > 1:
        raise ConversionError("noise= cannot widen a convolution in groups: end the network with a layer without groups")
    weight, bias = get_weight_and_bias(layer)
    axis = 0 if affine.transposed is None else 1
    wide = affine.make_layer(
        torch.cat([weight, torch.zeros_like(weight)], axis), None if bias is None else torch.cat([bias, torch.zeros_like(bias)])
    )
    setattr(wide, "out_features" if affine.linear else "out_channels", 2 * affine.outputs)
    return carry_hooks(layer, wide)


def check_answer(net: nn.Module, made: nn.Module, example: Any, output: int | str | None) -> None:
    """Raise ConversionError unless the widened network answers with the means of the other one, and variances of one."""
    before, after = (run_trial(copy_with(each, {}), example, output) for each in (net, made))
    columns = before.shape[1] if before.dim() > 1 else 1
    means = after[:, :columns] if after.dim() > 1 else after
    fits = after.dim() > 1 and after.shape[1] == 2 * columns and means.numel() == before.numel()
    if not fits or not torch.allclose(means.reshape(before.shape), before.to(means.dtype), rtol=1e-3, atol=1e-5):
        raise ConversionError(
            f"noise= doubles the outputs of the last layer, and {type(net).__name__} then answers {list(after.shape)}, not "
            f"{[len(before), 2 * columns, *before.shape[2:]]}: let it return what its last layer returns"
        )
    if not torch.allclose(after[:, columns:], torch.ones_like(after[:, columns:]), rtol=1e-3):
        raise ConversionError(
            f"noise= needs a network that returns what its last layer returns, and {type(net).__name__} does something to it "
            "afterwards: leave that out, and standardise the targets instead"
        )


def run_trial(net: nn.Module, example: Any, output: int | str | None) -> Tensor:
    """The answer of a network, which may be changed, in evaluation mode."""
    with dry_run(net):
        return select_output(pytrees.call_network(net, example), output)


def compute_gaussian_loss(output: Tensor, target: Tensor, beta: float) -> Tensor:
    """The mean β-NLL of outputs `[B, 2C, …]`, means and then variances, in nats; `beta` 0 is the Gaussian NLL.

    Raises ValueError if the targets do not have the shape of the means.

    >>> compute_gaussian_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([0.0]), beta=0.0)  # ½ log 2π
    tensor(0.9189)
    """
    if output.dim() < 2 or output.shape[1] % 2:
        raise ValueError(
            f"a network that predicts noise must answer with means and variances, [rows, 2C, …], got {list(output.shape)}: "
            "pass example=, so that its last layer is found"
        )
    mean, variance = output.chunk(2, 1)
    if [n for n in target.shape if n != 1] != [n for n in mean.shape if n != 1]:
        raise ValueError(f"targets must have the shape of the means, {list(mean.shape)}, got {list(target.shape)}")
    error = target.view_as(mean).to(mean.dtype) - mean
    loss = 0.5 * (2 * math.pi * variance).log() + error.square() / (2 * variance)
    return (loss * variance.detach() ** beta if beta else loss).mean()


def describe_noise(net: nn.Module) -> dict[str, Any] | None:
    """What `save` writes about the noise: the layer and its β; None without it."""
    noise = find_noise(net)
    return None if noise is None else {"layer": find_noise_head(net), "beta": noise.beta}


def restore_noise(net: nn.Module, about: Any) -> nn.Module:
    """The network that was saved, from what `describe_noise` returned. Raises FileError if that is damaged."""
    if about is None or find_noise(net) is not None:
        return net
    beta = about.get("beta") if isinstance(about, Mapping) else None
    layer = about.get("layer") if isinstance(about, Mapping) else None
    if not isinstance(beta, (int, float)) or isinstance(beta, bool) or not 0 <= beta <= 1 or not isinstance(layer, str):
        raise FileError(f"its noise must name a layer and a beta from 0 to 1, got {quote(about)}")
    try:
        return replace_head(net, layer, TargetNoise(float(beta)))
    except ConversionError as error:
        raise FileError(str(error)) from error
