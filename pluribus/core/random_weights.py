"""Layers whose weights are drawn: what may be known of them, whatever the method.

    E w_ij = μ_ij,  Var w_ij = σ_ij²:   the response to x has the mean Σ_j μ_ij x_j and the variance Σ_j σ_ij² x_j²

They report both for every weight, answer with fixed weights in place of drawn ones (`use_fixed_weights`), and can be pruned: a
weight that hardly varies may as well be its mean, or zero. A layer that is mostly zeros computes its deviation by a
sparse product.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from . import pytrees
from .affine import Affine
from .members import MemberLayer

SPARSE = 0.95
"""The share of zeros from which on a linear layer's variances are kept as a sparse matrix, if there are as many as LARGE.

For 800×500 weights and 1,000 rows it takes 3.6 ms in place of 10.4 at 98 % zeros, 5.3 at 95 %, 8.5 at 90 % (one core of a busy
machine, the fastest of 200); small layers gain nothing."""
LARGE = 2**16


class RandomWeights(MemberLayer):
    """A linear or convolutional layer with random weights.

    Subclasses set `mean` and `sigma`, None for one that they do not have as a parameter, and `offset`, the bias; they write
    `variance`, and leave out of it what is `still`.
    """

    mean: nn.Parameter | None
    sigma: nn.Parameter | None
    offset: nn.Parameter | None
    frozen: Tensor | None
    still: Tensor | None
    """Which weights do not vary, where no parameter can say so."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.affine = Affine(layer)
        self.instead: Tensor | None = None
        self.register_buffer("frozen", None)
        self.register_buffer("still", None)

    @property
    def mu(self) -> Tensor:
        """The mean of every weight."""
        if self.mean is not None:
            return self.mean
        assert self.sigma is not None
        return torch.zeros_like(self.sigma)

    def variance(self) -> Tensor:
        """Of every weight."""
        raise TypeError(f"{type(self).__name__} must define variance")

    def mask_still(self, variance: Tensor) -> Tensor:
        """Without that of the weights that stand still."""
        return variance if self.still is None else variance.masked_fill(self.still, 0)

    def forward(self, x: Tensor) -> Tensor:
        if self.instead is None:
            return super().forward(x)
        y, current = self.affine(x, self.instead, self.offset), self.current
        return pytrees.repeat_rows(y, current.computed) if current.only is None and self.gets_shared_rows(current) else y

    def measure_deviation(self, x: Tensor, variance: Callable[[], Tensor]) -> Tensor:
        """The standard deviation of the response to each row of x, of weights with this variance."""
        sources = [*self.parameters(recurse=False), *self.buffers(recurse=False)]
        return self.affine.measure_deviation(x, self.compute_once("variance", lambda: self.compress(variance()), *sources))

    def compress(self, variance: Tensor) -> Tensor:
        """The same matrix, sparse if that is faster: of a linear layer, where it is not computed anew in every pass."""
        if self.training or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return variance
        if not self.affine.linear or variance.is_meta or variance.numel() < LARGE or compute_share(variance == 0) < SPARSE:
            return variance
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            return variance.to(torch.promote_types(variance.dtype, torch.float)).to_sparse_csr()

    @torch.no_grad()
    def prune(self, which: Tensor, to: Literal["zero", "mean"]) -> None:
        """Make the weights where `which` is true exactly zero, or exactly their mean."""
        if to == "zero" and self.mean is not None:
            self.mean.masked_fill_(which, 0)
        if self.sigma is not None:
            self.sigma.masked_fill_(which, 0)
        elif to == "mean":
            self.still = which.clone() if self.still is None else self.still | which

    @torch.no_grad()
    def find_zeros(self) -> Tensor:
        """Which weights are zero and nothing else."""
        return (self.mu == 0) & (self.variance() == 0)

    @torch.no_grad()
    def describe_pruning(self) -> str:
        """What of its weights does not vary, in words; empty if all do."""
        zero = self.find_zeros()
        kinds = {"zero": compute_share(zero), "their mean": compute_share((self.variance() == 0) & ~zero)}
        parts = [f"{100 * part:.1f} % of {zero.numel():,} weights are {what}" for what, part in kinds.items() if part > 0]
        return ", ".join(parts)


def find_random_layers(net: nn.Module) -> dict[str, RandomWeights]:
    """By name, those of nested ensembles included."""
    return {name: module for name, module in net.named_modules() if isinstance(module, RandomWeights)}


@contextmanager
def use_fixed_weights(weights: Mapping[RandomWeights, Tensor]) -> Iterator[None]:
    """For a while, layers answer with these weights, without noise; gradients reach them."""
    before = {layer: layer.instead for layer in weights}
    try:
        for layer in weights:
            layer.instead = weights[layer]
        yield
    finally:
        for layer in weights:
            layer.instead = before[layer]


def compute_share(which: Tensor) -> float:
    return which.double().mean().item()
