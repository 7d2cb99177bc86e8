"""Variance layers: weights with mean zero that keep what they learn in their variances.

    gaussian    w_ij = σ_ij ε,   ε ~ N(0, 1)         b_kj = ε_kj sqrt(Σ_i a_ki² σ_ij²)                     (eq. 4)
    bernoulli   w_ij = θ_ij (2ε − 1),  ε ~ Bernoulli(½)
    uniform     w_ij = θ_ij ε,   ε ~ U(−1, 1)

The Gaussian layer samples activations (local reparameterisation): exact in distribution for each row of a linear layer; for
a convolution each output position has the right distribution, but positions are drawn independently. The other two sample
weights, one set a member and a pass; `sample="activations"` matches their first two moments instead (fast dropout), with
variance θ² and θ²/3. Everything before the first variance layer, and that layer's standard deviation, is computed once
for all draws.

A trained layer's mean is what this method gives up, so it cannot be kept; its bias is.

Neklyudov et al., "Variance Networks: When Expectation Does Not Meet Your Expectations", ICLR 2019, sections 3.1 and 3.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, get_weight_and_bias
from ..core.ensemble import Ensemble
from ..core.errors import ConversionError, Unsupported
from ..core.pytrees import join_members, split_members
from ..core.random_weights import RandomWeights
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Patterns, Subject

VARIANCE = {"gaussian": 1.0, "bernoulli": 1.0, "uniform": 1 / 3}
"""Of ε, by kind of noise."""


@dataclass(frozen=True)
class Variance(Spec):
    """Replace a layer, by default the one before the classifier, by a zero-mean random one; `include` chooses others.

    `samples` draws are averaged in evaluation; training uses one. `sample` is "activations" or "weights"; by default
    activations for Gaussian noise, weights for the others.
    """

    name: ClassVar[str] = "variance"
    keeps: ClassVar[Keeps] = "other layers"
    size_option: ClassVar[str | None] = "samples"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "K"

    noise: Literal["gaussian", "bernoulli", "uniform"] = "gaussian"
    samples: int = 20
    sample: Literal["activations", "weights"] | None = None
    include: Patterns = None
    exclude: Patterns = None

    takes_apart: ClassVar[tuple[str, ...]] = ("conv1d",)

    def check(self) -> None:
        require_choice("noise", self.noise, tuple(VARIANCE))
        require_choice("sample", self.sample, (None, "activations", "weights"))
        require_count("samples", self.samples, 1, "an answer needs a draw")

    def list_candidates(self, subject: Subject) -> Mapping[str, tuple[Any, ...]]:
        """The layer: the one before the last, which is the default, the last one, and the one before these."""
        names = list(subject.layers(AFFINE))
        return {"include": (None, *(names[place] for place in (-1, -3) if len(names) >= max(-place, 2)))}

    def convert(self, subject: Subject) -> Ensemble:
        layers = subject.select(AFFINE, self.include, self.exclude, select_before_last)
        sample = self.sample or ("activations" if self.noise == "gaussian" else "weights")
        replaced = {name: ZeroMean(layer, self.noise, sample) for name, layer in layers.items()}
        return VarianceEnsemble(subject, self, 1, replaced)


def select_before_last(layers: dict[str, nn.Module]) -> list[str]:
    if len(layers) < 2:
        raise ConversionError(
            f"there is no layer before the classifier: the network has only {', '.join(layers)}. Choose a layer with include="
        )
    return [list(layers)[-2]]


class VarianceEnsemble(Ensemble):
    reduction = "mean"
    sampled = True

    def check_order(self, order: list[str]) -> None:
        super().check_order(order)
        modules = dict(self.net.named_modules())
        meant = self.conversion.order or order
        ran = [name for name in order if isinstance(modules[name], (*AFFINE, ZeroMean)) and name in meant]
        assert isinstance(self.spec, Variance)
        if self.spec.include is None and len(ran) > 1 and not isinstance(modules[ran[-2]], ZeroMean):
            self.conversion.remark(
                f"the layer before the last to run is {ran[-2]}, not the one converted: pass example=, or include="
            )


class ZeroMean(RandomWeights):
    """A layer with weights `sigma` · ε. The sign of `sigma` means nothing, so it needs no logarithm."""

    undecayed = ("sigma",)  # decay would shrink what the layer has learned, as it would a variance of VariationalDropout

    def __init__(self, layer: nn.Module, noise: str, sample: str) -> None:
        super().__init__(layer)
        self.noise, self.sample = noise, sample
        weight, bias = get_weight_and_bias(layer)
        self.mean = None
        self.sigma: nn.Parameter = nn.Parameter(torch.empty_like(weight).uniform_(-1, 1) / self.affine.fan_in**0.5)
        self.offset = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)

    def respond(self, x: Tensor) -> Tensor:
        if self.frozen is not None:
            y = self.affine.run_each(x, self.sigma * self.pick(self.frozen))
        elif self.sample == "weights":
            y = self.affine.run_each(x, self.sigma * self.draw_noise(self.sigma))
        else:
            std = split_members(self.compute_std(join_members(x)), len(x))  # once, if the members share x
            y = (std * self.draw(torch.randn, std.shape[1:], std)).to(x.dtype)
        return self.affine.add_to_channels(y, None if self.offset is None else self.offset.unsqueeze(0))

    def compute_std(self, x: Tensor) -> Tensor:
        """The standard deviation of the response to each row of x."""
        return self.measure_deviation(x, self.variance)

    def variance(self) -> Tensor:
        return VARIANCE[self.noise] * self.sigma.square()

    def draw_noise(self, like: Tensor) -> Tensor:
        """Noise for one set of weights a member, `[M, *like.shape]`."""
        if self.noise == "gaussian":
            return self.draw(torch.randn, like.shape, like, per_row=False).to(like.dtype)
        uniform = self.draw(torch.rand, like.shape, like, per_row=False)
        if self.noise == "bernoulli":
            uniform.sub_(0.5).sign_().add_(0.5).sign_()  # −1 or 1; of ½ itself 1
        else:
            uniform.mul_(2).sub_(1)
        return uniform.to(like.dtype)

    def freeze(self, count: int) -> None:
        self.frozen = self.draw_noise(self.sigma.detach())

    def to_plain(self, index: int) -> nn.Module:
        assert self.frozen is not None
        return self.affine.make_layer(self.sigma * self.frozen[index], self.offset)

    def to_noiseless(self, index: int) -> nn.Module:
        raise Unsupported("Variance has no weights without noise: their mean is zero, and it learnt their variances")
