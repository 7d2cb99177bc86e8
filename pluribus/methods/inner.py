"""Inner ensembles: average m copies of a layer, then fold them into one.

    y = (1/m) Σ_i (w_i x + b_i)  =  w̄ x + b̄,     w̄ = (1/m) Σ_i w_i                                        (eq. 3)

The mean is taken before the activation, so m copies are one layer whose weight is the mean: a forward and a backward pass
cost one convolution whatever m is, ∂L/∂w_i = (1/m) ∂L/∂w̄ for every i, and folding loses nothing.

What that means, plainly: under SGD with any momentum, schedule and (coupled) weight decay, w̄ follows exactly the base layer
trained with learning rate lr/m and weight decay m·wd; the differences between copies never see the data. Under Adam without
weight decay, and under AdamW, it follows the base layer with m·ε in place of ε: both moments of the gradients are those of the
base layer, divided by m and m². The tests show it, after 200 steps of a network with BatchNorm and residuals.

Initialisation (eq. 10): w_i ~ N(0, m/(β² n)). PyTorch's *gain* is 1/β, so the variance is m·gain²/fan_in.
Folding (eq. 11): w̃ = Σ_i α_i w_i with α_i ∝ 1/Var(w_i), one variance a copy, over all its elements, used for the bias too.
The paper calls the plain mean unfair; but it *is* the trained function, and inverse variance only comes near it. So the mean
is the default here.

`lean=True` uses this: it stores w̄ and, for each layer, one number and a seed. Where every copy gets the same gradient and
the update is linear in the copy, w_i = w̄ + c·δ_i with δ_i as drawn, and c follows the optimiser's own recursion with no
gradient at all. That is so under SGD with (coupled) decay, and under adaptive optimisers with none or a decoupled one (AdamW):
there lean is exactly the trajectory of m copies. Adam with coupled decay divides each copy's decay by that copy's statistics,
and the norm of a gradient (LARS, clipping) counts copies: `check_optimizer` refuses these. `pluribus.fit` calls it; in
a loop of your own, call `ensemble.check_optimizer(optimizer)` once.

Mohamed et al., "Inner Ensemble Networks: Average Ensemble as an Effective Regularizer", 2020.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, Affine, get_weight_and_bias, prefer_convolutions
from ..core.ensemble import Ensemble
from ..core.errors import Unsupported
from ..core.folding import Stack, copy_plain, prepare_member
from ..core.initialization import center, measure_scale
from ..core.members import Converted
from ..core.spec import Keeps, Spec, require_choice, require_count
from ..core.surgery import Patterns, Subject


@dataclass(frozen=True)
class Inner(Spec):
    """Replace each layer by the average of `copies` of it.

    Without `include` the convolutions are replaced (the paper's IEN), or every layer of a network that has none;
    `include="*"` takes linear layers too (IEN+FC).

    `init="keep"` draws the copies about the network's own weights, so that their mean is those weights and each copy has
    the variance of eq. 10 relative to them; `init="paper"` draws them anew by eq. 10 for the given `nonlinearity`.

    `lean=True` stores one weight a layer instead of `copies`, and trains it exactly as their mean.
    """

    name: ClassVar[str] = "inner"
    keeps: ClassVar[Keeps] = "predictions"
    size_option: ClassVar[str | None] = "copies"
    other_steps: ClassVar[Mapping[str, str]] = {"sgd": "the mean of m copies follows the base network at lr/m and m·wd"}
    growth_axis: ClassVar[Literal["M", "K"] | None] = "M"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"copies": (2, 4, 8)}

    copies: int = 4
    init: Literal["keep", "paper"] = "keep"
    fold: Literal["mean", "inverse-variance"] = "mean"
    nonlinearity: Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"] = "relu"
    lean: bool = False
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_count("copies", self.copies, 2, "one copy is the base network")
        require_choice("init", self.init, ("keep", "paper"))
        require_choice("fold", self.fold, ("mean", "inverse-variance"))
        require_choice("nonlinearity", self.nonlinearity, ("linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"))
        require_choice("lean", self.lean, (False, True))

    def get_keeps(self) -> Keeps:
        return "other layers" if self.init == "paper" else self.keeps

    def describe_equivalence(self, optimizer: str, lr: float, weight_decay: float, steps: int) -> str | None:
        """Every copy gets the m-th part of one gradient. Adam divides by its size; SGD makes the mean move m times less."""
        m = self.copies
        if optimizer == "sgd":
            return (
                f"under SGD the mean of {m} copies trains exactly as the base layer does at learning rate {lr / m:.3g} and "
                f"weight decay {weight_decay * m:.3g}: it is the base network with other settings"
            )
        if optimizer == "adamw" or (optimizer == "adam" and weight_decay == 0):
            name = {"adamw": "AdamW", "adam": "Adam"}[optimizer]
            return (
                f"under {name} the mean of {m} copies trains as the base layer does, with {m}·ε in place of ε: it is the base "
                "network by construction"
            )
        return None

    def convert(self, subject: Subject) -> Ensemble:
        layers = subject.select(AFFINE, self.include, self.exclude, prefer_convolutions)
        kind = Lean if self.lean else Averaged
        return InnerEnsemble(subject, self, 1, {name: kind(layer, self) for name, layer in layers.items()})


class InnerEnsemble(Ensemble):
    def fold(self) -> nn.Module:
        assert isinstance(self.spec, Inner)
        if self.spec.fold == "mean":
            return super().fold()
        net = copy_plain(self.net, lambda layer: cast(Averaged, layer).average_by_inverse_variance())
        return Stack([prepare_member(net, self.output)]).eval()

    def network(self, index: int) -> nn.Module:
        return cast(Stack, self.fold()).nets[index]

    def check_optimizer(self, optimizer: torch.optim.Optimizer, clips_gradient: bool = False) -> None:
        """Lean copies are exact only where the optimiser treats m copies as it treats their mean."""
        assert isinstance(self.spec, Inner)
        if self.spec.lean:
            check_exact(optimizer)
        if self.spec.lean and clips_gradient:
            raise Unsupported(
                "Inner(lean=True) cannot be trained with gradient clipping: it has one weight for all copies, and the norm of "
                "theirs would count each. Do without clipping, or lean=False"
            )


class Averaged(Converted):
    """m copies of a layer, run as their mean. `weights` `[m, …]`, `biases` `[m, C]` or None."""

    matrices: ClassVar[Mapping[str, int]] = {"weights": 1}

    def __init__(self, layer: nn.Module, spec: Inner) -> None:
        super().__init__()
        self.affine = Affine(layer)
        weight, bias = get_weight_and_bias(layer)
        spread, anew = measure_spread(layer, spec), spec.init == "paper"
        with torch.no_grad():
            mean, deviations = start_copies(weight, weight.new_empty(spec.copies, *weight.shape).normal_(), spread, anew)
            self.weights = nn.Parameter(mean + deviations, weight.requires_grad or anew)
            self.biases = None
            if bias is not None:
                noise = bias.new_empty(spec.copies, *bias.shape).uniform_(-1, 1)
                mean, deviations = start_copies(bias, noise, measure_bias_spread(layer), anew)
                self.biases = nn.Parameter(mean + deviations, bias.requires_grad or anew)

    def forward(self, x: Tensor) -> Tensor:
        return self.affine(x, *self.mean())

    def mean(self) -> tuple[Tensor, Tensor | None]:
        weight = self.compute_once("weight", lambda: self.weights.mean(0), self.weights)
        return weight, None if self.biases is None else self.biases.mean(0)

    def copies(self) -> tuple[Tensor, Tensor | None]:
        """Weights `[m, …]` and biases `[m, C]`."""
        return self.weights, self.biases

    def to_plain(self, index: int) -> nn.Module:
        return self.affine.make_layer(*self.mean())

    def average_by_inverse_variance(self) -> nn.Module:
        """Eq. 11."""
        weights, biases = self.copies()
        if weights[0].numel() == 1:
            return self.to_plain(0)  # one number has no variance
        share = weigh_by_inverse_variance(weights)
        return self.affine.make_layer(
            torch.tensordot(share, weights, 1), None if biases is None else torch.tensordot(share, biases, 1)
        )


def weigh_by_inverse_variance(weights: Tensor) -> Tensor:
    """The shares `[m]` of copies `[m, …]` in their average: α_i ∝ 1/Var(w_i), one variance a copy, over all its elements.

    >>> weigh_by_inverse_variance(torch.tensor([[0.0, 1.0], [0.0, 2.0]]))
    tensor([0.8000, 0.2000])
    """
    variance = weights.detach().double().flatten(1).var(1)
    return torch.softmax(-variance.log(), 0).to(weights.dtype)


def start_copies(tensor: Tensor, noise: Tensor, spread: float, anew: bool) -> tuple[Tensor, Tensor]:
    """Where copies begin, given noise `[m, …]`: their mean, and their deviations from it, which add up to nothing."""
    return noise.mean(0) * spread if anew else tensor.detach(), center(noise) * spread


def measure_spread(layer: nn.Module, spec: Inner) -> float:
    """The standard deviation of copies: eq. 10, or as far about the weights as that is from zero."""
    own = measure_scale(get_weight_and_bias(layer)[0])
    if spec.init == "paper":
        own = nn.init.calculate_gain(spec.nonlinearity) / Affine(layer).fan_in ** 0.5
    return own * spec.copies**0.5


def measure_bias_spread(layer: nn.Module) -> float:
    """Each copy has its bias, drawn as PyTorch does."""
    return get_weight_and_bias(layer)[0][0].numel() ** -0.5


class Lean(Averaged):
    """m copies of which only the mean is stored: copy i is `average` + `spread` · δ_i, and δ_i is drawn again from `seed`.

    `spread` is a parameter that gets a gradient of zero: so the optimiser does to it what it does to each copy's deviation. It
    has as many axes as the weight, because by these some training scripts choose what to decay.
    """

    matrices: ClassVar[Mapping[str, int]] = {"average": 0}

    def __init__(self, layer: nn.Module, spec: Inner) -> None:
        Converted.__init__(self)
        self.affine, self.count = Affine(layer), spec.copies
        weight, bias = get_weight_and_bias(layer)
        spread, anew = measure_spread(layer, spec), spec.init == "paper"
        self.seed: Tensor
        self.register_buffer("seed", torch.randint(2**62, ()))
        with torch.no_grad():
            noise, bias_noise = self.noise(weight, bias)
            trains = weight.requires_grad or anew
            self.average = Mean(start_copies(weight, noise, spread, anew)[0].clone(), trains)
            self.spread = nn.Parameter(weight.new_full((1,) * weight.dim(), spread), trains)
            self.bias_average = self.bias_spread = None
            if bias is not None:
                assert bias_noise is not None
                spread, trains = measure_bias_spread(layer), bias.requires_grad or anew
                self.bias_average = Mean(start_copies(bias, bias_noise, spread, anew)[0].clone(), trains)
                self.bias_spread = nn.Parameter(bias.new_full((1,), spread), trains)

    def noise(self, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """`[m, …]` for the weight and `[m, C]` for the bias, the same whenever it is asked for."""
        generator = torch.Generator().manual_seed(int(self.seed))
        own = torch.randn(self.count, *weight.shape, generator=generator).to(weight)
        return own, None if bias is None else (2 * torch.rand(self.count, *bias.shape, generator=generator) - 1).to(bias)

    def mean(self) -> tuple[Tensor, Tensor | None]:
        if not torch.is_grad_enabled():
            return self.average, self.bias_average
        weight = Share.apply(self.average, self.spread, self.count)
        return weight, None if self.bias_average is None else Share.apply(self.bias_average, self.bias_spread, self.count)

    def copies(self) -> tuple[Tensor, Tensor | None]:
        noise, bias_noise = self.noise(self.average, self.bias_average)
        weights = self.average + self.spread * center(noise)
        if self.bias_average is None or self.bias_spread is None or bias_noise is None:
            return weights, None
        return weights, self.bias_average + self.bias_spread * center(bias_noise)

    def to_plain(self, index: int) -> nn.Module:
        return self.affine.make_layer(self.average, self.bias_average)


class Mean(nn.Parameter):
    """The mean of copies that are not stored: only some optimisers may have it."""


class Share(torch.autograd.Function):
    """The mean as it is. Going back, each of m copies gets 1/m of the gradient, and their spread one of zero."""

    generate_vmap_rule = True

    @staticmethod
    def forward(average: Tensor, spread: Tensor, copies: int) -> Tensor:
        return average.view_as(average)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        _, ctx.like, ctx.copies = inputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] / ctx.copies, torch.zeros_like(ctx.like), None


ADAPTIVE = (
    *(torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax),
    *(torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.RMSprop, torch.optim.Rprop),
)
"""What they do to a number depends on its own gradients alone, decay apart."""


def check_exact(optimizer: torch.optim.Optimizer) -> None:
    """Raise if the optimiser would move the mean of m copies in another way than the copies themselves."""
    for group in optimizer.param_groups:
        if isinstance(optimizer, torch.optim.SGD) or not any(isinstance(parameter, Mean) for parameter in group["params"]):
            continue
        name = type(optimizer).__name__
        if not isinstance(optimizer, ADAPTIVE):
            raise Unsupported(
                f"Inner(lean=True) cannot be trained by {name}, which is not known to treat m copies as it treats their mean: "
                "use SGD or AdamW, or lean=False"
            )
        decoupled = isinstance(optimizer, torch.optim.AdamW) or group.get("decoupled_weight_decay", False)
        if group.get("weight_decay", 0) and not decoupled:
            raise Unsupported(
                f"Inner(lean=True) cannot be trained by {name} with weight_decay={group['weight_decay']}: it adds the decay of "
                "each copy to the gradient before it scales it, so that copies go different ways. Use SGD, AdamW or lean=False"
            )
