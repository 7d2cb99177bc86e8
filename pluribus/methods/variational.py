"""Variational dropout: Gaussian weights, their noise learnt, held back by a prior.

    layer      w_ij ~ N(μ_ij, α μ_ij²)        neuron   N(μ_ij, α_j μ_ij²)       weight   N(μ_ij, α_ij μ_ij²)
    additive   w_ij ~ N(μ_ij, σ_ij²)          zero-mean   N(0, σ_ij²)                                      (eq. 14)

    ELBO = E_q log p(T | X, W) − KL(q || prior)                                                             (eq. 5)

The divergences are in `core.divergence`. Activations are sampled (local reparameterisation). When α grows without bound, a
layer has become a variance layer: its answer is then in its variances, and the mean alone answers at chance.

Four ways to answer, `ensemble.answer = …`, at any time:
    "average"     `samples` draws, probabilities averaged
    "sample"      one draw
    "mean"        the mean weights, no noise (mean propagation)
    "zero-mean"   `samples` draws with the means set to zero, variances as they are (theorem 1 says when that is harmless)

Neklyudov et al., ICLR 2019, section 4; Kingma et al., 2015; Molchanov et al., 2017.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ..core import kl_divergence
from ..core.affine import AFFINE, get_weight_and_bias
from ..core.ensemble import Ensemble
from ..core.errors import Unsupported
from ..core.initialization import measure_scale
from ..core.losses import Criterion
from ..core.modes import copy_for_evaluation
from ..core.pytrees import join_members, split_members
from ..core.random_weights import RandomWeights
from ..core.spec import Keeps, Spec, require_choice, require_count, require_number
from ..core.surgery import Patterns, Subject

PARAMETERIZATIONS = ("layer", "neuron", "weight", "additive", "zero-mean")
PRIORS = ("log-uniform", "student-t", "ard")
ANSWERS = ("average", "sample", "mean", "zero-mean")
LEAST_REACH = 1.0
"""By how much log α must be able to move in training for the noise to count as learnt: a factor e of the variance."""


@dataclass(frozen=True)
class VariationalDropout(Spec):
    """Give weights learnt Gaussian noise. Without `include`, the weights of every layer.

    `kl` is how the log-uniform divergence is computed: "approximation" (Molchanov et al.) or "monte-carlo", one draw a
    weight. Student-t is always by Monte Carlo, ARD always exact. `log_alpha` is where the noise starts, and `log_alpha_rate`
    how many times faster than the weights it is learnt: with Adam it can move by no more than the learning rate a step.
    A trained network is kept, unless its means are given up ("zero-mean"): `answer="mean"` predicts exactly as it did.
    """

    name: ClassVar[str] = "variational-dropout"
    keeps: ClassVar[Keeps] = "weights"
    size_option: ClassVar[str | None] = "samples"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"log_alpha_rate": (1.0, 10.0, 30.0), "log_alpha": (-5.0, -3.0)}

    parameterization: Literal["layer", "neuron", "weight", "additive", "zero-mean"] = "layer"
    prior: Literal["log-uniform", "student-t", "ard"] = "log-uniform"
    samples: int = 20
    answer: Literal["average", "sample", "mean", "zero-mean"] = "average"
    kl: Literal["approximation", "monte-carlo"] = "approximation"
    nu: float = 1e-16
    log_alpha: float = -5.0
    log_alpha_rate: float = 1.0
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_choice("parameterization", self.parameterization, PARAMETERIZATIONS)
        require_choice("prior", self.prior, PRIORS)
        require_choice("answer", self.answer, ANSWERS)
        require_choice("kl", self.kl, ("approximation", "monte-carlo"))
        require_count("samples", self.samples, 1, "an answer needs a draw")
        require_number("nu", self.nu, positive=True)
        require_number("log_alpha", self.log_alpha)
        require_number("log_alpha_rate", self.log_alpha_rate, positive=True)

    def get_keeps(self) -> Keeps:
        return "other layers" if self.parameterization == "zero-mean" else self.keeps

    def describe_equivalence(self, optimizer: str, lr: float, weight_decay: float, steps: int) -> str | None:
        """A step of Adam moves a number by about its learning rate at most, so that log α may have no time to move."""
        reach = lr * self.log_alpha_rate * steps
        if optimizer in ("sgd", "muon") or self.parameterization in ("additive", "zero-mean") or reach >= LEAST_REACH:
            return None
        name = {"adamw": "AdamW", "adam": "Adam"}[optimizer]
        return (
            f"in {steps:,} steps {name} can move log α by about {reach:.2g} at most from where it starts, {self.log_alpha:g}: "
            "the noise is hardly learnt, and this is Gaussian dropout of a fixed rate; a larger log_alpha_rate changes that"
        )

    def convert(self, subject: Subject) -> Ensemble:
        layers = subject.select(AFFINE, self.include, self.exclude)
        return VariationalEnsemble(subject, self, 1, {name: Noisy(layer, self) for name, layer in layers.items()})


@dataclass(frozen=True)
class ELBO:
    """The evidence lower bound over a data set: `data` − `kl`, in nats."""

    data: float
    kl: float

    @property
    def total(self) -> float:
        return self.data - self.kl


class VariationalEnsemble(Ensemble):
    reduction = "mean"
    sampled = True
    has_penalty = True
    settings = ("samples", "answer")

    def __init__(self, subject: Subject, spec: VariationalDropout, members: int, replaced: dict[str, nn.Module]) -> None:
        super().__init__(subject, spec, members, replaced)
        self.answer: str = spec.answer

    @property
    def answer(self) -> str:
        """How to answer in evaluation: "average", "sample", "mean" or "zero-mean"."""
        return self._answer

    @answer.setter
    def answer(self, answer: str) -> None:
        require_choice("answer", answer, ANSWERS)
        if self.is_frozen:
            raise ValueError("its draws are fixed: set answer on the ensemble that was frozen, and freeze it anew")
        self._answer = answer
        for layer in self.list_layers():
            layer.answer = answer

    def count_members(self, training: bool) -> int:
        if not self.sampled:
            return self._count
        return self.samples if self._answer in ("average", "zero-mean") and not training else 1

    def list_layers(self) -> list["Noisy"]:
        return [module for module in self.net.modules() if isinstance(module, Noisy)]

    def param_groups(self) -> list[dict[str, Any]]:
        """As of any ensemble, with log α in a group of its own if it has a `rate`, which multiplies `fit`'s learning rate."""
        groups, rate = super().param_groups(), getattr(self.spec, "log_alpha_rate", 1.0)
        fast = {id(layer.log_alpha) for layer in self.list_layers() if layer.log_alpha is not None}
        if rate == 1 or not fast:
            return groups
        apart = [p for group in groups for p in group["params"] if id(p) in fast]
        rest = [group | {"params": [p for p in group["params"] if id(p) not in fast]} for group in groups]
        return [group for group in rest if group["params"]] + [{"params": apart, "weight_decay": 0.0, "rate": rate}]

    def penalty(self) -> Tensor:
        """KL(q || prior), summed over all weights. For an improper prior it is zero at α → ∞."""
        return torch.stack([layer.kl() for layer in self.list_layers()]).sum()

    @torch.no_grad()
    def elbo(self, batches: Iterable[tuple[Any, Tensor]], samples: int = 10, criterion: Criterion | None = None) -> ELBO:
        """The bound over the whole data set that `batches` of (x, y) run through, its data term over `samples` draws.

        `criterion` is the mean negative log-likelihood of a batch; for a regression the default, the squared error, is
        not one, so pass it.
        """
        if self.task == "regression" and criterion is None:
            raise ValueError("the ELBO of a regression needs criterion=, the mean negative log-likelihood of a batch")
        if self.is_frozen:
            raise self.refuse("ELBO", "its draws are fixed; ask the ensemble that was frozen")
        criterion = criterion or self.criterion
        twin = copy_for_evaluation(self)
        twin.samples, twin.answer = samples, "average"
        data = 0.0
        for x, y in batches:
            data -= sum(criterion(output, y).item() for output in twin(x)) / samples * len(y)
        return ELBO(data, self.penalty().item())

    def count_plain_members(self) -> int:
        return 1 if self.sampled and self.answer == "mean" else super().count_plain_members()


class Noisy(RandomWeights):
    """A layer with weights N(`mean`, variance), the variance by `log_alpha` (one, one an output, one a weight) or `sigma`."""

    undecayed = ("log_alpha", "sigma")

    def __init__(self, layer: nn.Module, spec: VariationalDropout) -> None:
        super().__init__(layer)
        self.spec = spec
        self.answer: str = spec.answer
        weight, bias = get_weight_and_bias(layer)
        kind = spec.parameterization
        self.mean = None if kind == "zero-mean" else nn.Parameter(weight.detach().clone(), weight.requires_grad)
        self.offset = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)
        self.log_alpha: nn.Parameter | None = None
        self.sigma = None
        if kind == "zero-mean":
            self.sigma = nn.Parameter(torch.empty_like(weight).uniform_(-1, 1) / self.affine.fan_in**0.5)
        elif kind == "additive":  # the same noise to begin with as one α for the layer
            self.sigma = nn.Parameter(torch.ones_like(weight) * measure_scale(weight) * math.exp(spec.log_alpha / 2))
        else:
            shape = {"layer": (), "neuron": (self.affine.outputs,), "weight": weight.shape}[kind]
            self.log_alpha = nn.Parameter(weight.new_full(shape, spec.log_alpha))

    def respond(self, x: Tensor) -> Tensor:
        answer = "sample" if self.training else self.answer
        rows = join_members(x)  # if the members share x, all of this is computed once
        if self.frozen is not None:
            y = self.affine.run_each(x, self.draw_weights(self.pick(self.frozen)))
        elif answer == "mean":
            y = split_members(self.affine(rows, self.mu), len(x))
        else:
            std = split_members(self.compute_std(rows), len(x))
            noise = self.draw(torch.randn, std.shape[1:], std)
            if answer == "zero-mean" or self.mean is None:
                y = (std * noise).to(x.dtype)
            else:
                y = split_members(self.affine(rows, self.mean), len(x))
                y = torch.addcmul(y, std, noise) if y.dtype == std.dtype else y + (std * noise).to(y.dtype)
        return self.affine.add_to_channels(y, None if self.offset is None else self.offset.unsqueeze(0))

    def compute_std(self, x: Tensor) -> Tensor:
        """The standard deviation of the response to each row of x."""
        if self.spec.parameterization in ("layer", "neuron"):  # α is the same for all weights of an output, so it can wait
            assert self.log_alpha is not None
            std = self.measure_deviation(x, lambda: self.mask_still(self.mu.square()))
            root = (0.5 * self.log_alpha).exp().expand(1, self.affine.outputs)
            return std * self.affine.align_channels(root, std.unsqueeze(0)).squeeze(0)
        return self.measure_deviation(x, self.variance)

    def variance(self) -> Tensor:
        if self.log_alpha is None:
            assert self.sigma is not None
            return self.sigma.square()
        return self.mask_still(self.compute_log_alphas().exp() * self.mu.square())

    def compute_log_alphas(self) -> Tensor:
        """log α in the shape of the weight, or one for all."""
        if self.log_alpha is None:
            return kl_divergence.safe_log(self.variance()) - kl_divergence.safe_log(self.mu.square())
        if self.spec.parameterization != "neuron":
            return self.log_alpha
        ones = torch.ones_like(self.mu)
        return self.affine.scale_channels(ones, ones.new_ones(self.affine.inputs), self.log_alpha)

    def kl(self) -> Tensor:
        """KL(q || prior), summed over the weights of the layer."""
        prior = self.spec.prior
        if prior == "ard" or (prior == "log-uniform" and self.spec.kl == "approximation"):
            if self.mean is None:  # α is infinite: the divergence is zero whatever σ is
                return 0 * self.variance().sum()
            each = (kl_divergence.kl_ard if prior == "ard" else kl_divergence.kl_log_uniform)(self.compute_log_alphas())
            return each.sum() * (self.mean.numel() / each.numel())
        mean, log_variance = self.mu, kl_divergence.safe_log(self.variance())
        noise = torch.randn_like(mean)
        if prior == "student-t":
            return kl_divergence.estimate_kl_student_t(mean, log_variance, self.spec.nu, noise).sum()
        return kl_divergence.estimate_kl_log_uniform(mean, log_variance, noise).sum()

    def draw_weights(self, noise: Tensor) -> Tensor:
        """Weights from noise in their shape: with their means, unless the answer does without them."""
        return self.variance().sqrt() * noise + (0 if self.answer == "zero-mean" else self.mu)

    def freeze(self, count: int) -> None:
        still = self.answer == "mean"
        noise = self.draw(torch.randn, self.mu.shape, self.mu, per_row=False).to(self.mu.dtype)
        self.frozen = torch.zeros_like(noise) if still else noise

    def to_plain(self, index: int) -> nn.Module:
        return self.affine.make_layer(self.mu if self.frozen is None else self.draw_weights(self.frozen[index]), self.offset)

    def to_noiseless(self, index: int) -> nn.Module:
        if self.mean is None:
            raise Unsupported(
                "VariationalDropout has no weights without noise if their mean is zero: it learnt their variances"
            )
        return self.affine.make_layer(self.mean, self.offset)
