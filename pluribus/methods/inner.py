"""Inner ensembles: average m copies of a layer, then fold them into one.

    y = (1/m) Σ_i (w_i x + b_i)  =  w̄ x + b̄,     w̄ = (1/m) Σ_i w_i                                        (eq. 3)

The mean is taken before the activation, so m copies are one layer whose weight is the mean: a forward and a backward pass
cost one convolution whatever m is, ∂L/∂w_i = (1/m) ∂L/∂w̄ for every i, and folding loses nothing.

What that means, plainly: under SGD with any momentum, schedule and (coupled) weight decay, w̄ follows exactly the base layer
trained with learning rate lr/m and weight decay m·wd; the differences between copies never see the data. The tests show it.

Initialisation (eq. 10): w_i ~ N(0, m/(β² n)). PyTorch's *gain* is 1/β, so the variance is m·gain²/fan_in.
Folding (eq. 11): w̃ = Σ_i α_i w_i with α_i ∝ 1/Var(w_i), one variance a copy, over all its elements, used for the bias too.
The paper calls the plain mean unfair; but it *is* the trained function, and inverse variance only comes near it. So the mean
is the default here.

Mohamed et al., "Inner Ensemble Networks: Average Ensemble as an Effective Regularizer", 2020.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, Affine, convolutions_first, parts
from ..core.ensemble import Ensemble
from ..core.fresh import centred, draws
from ..core.members import Converted, Members
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Patterns, Subject


@dataclass(frozen=True)
class Inner(Spec):
    """Replace each layer by the average of `copies` of it.

    Without `include` the convolutions are replaced (the paper's IEN), or every layer of a network that has none;
    `include="*"` takes linear layers too (IEN+FC).

    `init="keep"` draws the copies about the network's own weights, so that their mean is those weights and each copy has
    the variance of eq. 10 relative to them; `init="paper"` draws them anew by eq. 10 for the given `nonlinearity`.
    """

    name: ClassVar[str] = "inner"
    keeps: ClassVar[Keeps] = "predictions"

    copies: int = 4
    init: Literal["keep", "paper"] = "keep"
    fold: Literal["mean", "inverse-variance"] = "mean"
    nonlinearity: Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"] = "relu"
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_count("copies", self.copies, 2, "one copy is the base network")
        require_choice("init", self.init, ("keep", "paper"))
        require_choice("fold", self.fold, ("mean", "inverse-variance"))
        require_choice("nonlinearity", self.nonlinearity, ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"))

    def kept(self) -> Keeps:
        return "other layers" if self.init == "paper" else self.keeps

    def convert(self, subject: Subject) -> Ensemble:
        layers = subject.select(AFFINE, self.include, self.exclude, convolutions_first)
        return InnerEnsemble(subject, self, Members(1), {name: Averaged(layer, self) for name, layer in layers.items()})


class InnerEnsemble(Ensemble):
    def fold(self) -> nn.Module:
        assert isinstance(self.spec, Inner)
        if self.spec.fold == "mean":
            return self.member(0)
        return self.plain(lambda layer: cast(Averaged, layer).inverse_variance())


class Averaged(Converted):
    """m copies of a layer, run as their mean. `weights` `[m, …]`, `biases` `[m, C]` or None."""

    def __init__(self, layer: nn.Module, spec: Inner) -> None:
        super().__init__()
        self.affine = Affine(layer)
        weight, bias = parts(layer)
        with torch.no_grad():
            if spec.init == "paper":
                gain = nn.init.calculate_gain(spec.nonlinearity)
                std = gain * (spec.copies / self.affine.fan_in) ** 0.5
                weights = torch.randn(spec.copies, *weight.shape, dtype=weight.dtype, device=weight.device) * std
            else:
                weights = weight + centred(draws(weight, spec.copies)) * spec.copies**0.5
            self.weights = nn.Parameter(weights, weight.requires_grad or spec.init == "paper")
            if bias is None:
                self.biases = None
            else:
                # Each copy has its bias, drawn as PyTorch does.
                drawn = bias.new_empty(spec.copies, *bias.shape).uniform_(-1, 1) / weight[0].numel() ** 0.5
                biases = drawn if spec.init == "paper" else bias + centred(drawn)
                self.biases = nn.Parameter(biases, bias.requires_grad or spec.init == "paper")

    def forward(self, x: Tensor) -> Tensor:
        return self.affine(x, self.weights.mean(0), None if self.biases is None else self.biases.mean(0))

    def plain(self, index: int) -> nn.Module:
        return self.affine.plain(self.weights.mean(0), None if self.biases is None else self.biases.mean(0))

    def inverse_variance(self) -> nn.Module:
        """Eq. 11."""
        if self.weights[0].numel() == 1:
            return self.plain(0)  # one number has no variance
        variance = self.weights.detach().double().flatten(1).var(1)
        share = torch.softmax(-variance.log(), 0).to(self.weights.dtype)
        return self.affine.plain(
            torch.tensordot(share, self.weights, 1), None if self.biases is None else torch.tensordot(share, self.biases, 1)
        )
